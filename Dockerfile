# The agent's image: one static binary, and nothing that could be run beside it.
#
# From the sources (the same program; the bytes that are published are those of scripts/release), with an image that has Rust and a musl target of its own (the official rust:…-alpine),
# named by its digest:
#   docker build --build-arg RUST_IMAGE=docker.io/library/rust@sha256:… --build-arg VERSION=… --build-arg REVISION=… .
# From a binary that scripts/build-static made, in a folder of its own, without any other image:
#   docker build --file Dockerfile --target prebuilt --build-arg VERSION=… --build-arg REVISION=… FOLDER
ARG RUST_IMAGE=scratch
# Nothing, or another base by its digest, where a scanner asks for one.
ARG BASE=scratch

FROM ${BASE} AS frame
ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="navin-cluster-agent" \
      org.opencontainers.image.description="Applies signed commands to a Kubernetes cluster that its manager cannot reach" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
USER 65532:65532
ENTRYPOINT ["/navin-cluster-agent"]
CMD ["run", "--inbox", "/var/lib/navin/inbox", "--run-dir", "/var/lib/navin/run"]

FROM frame AS prebuilt
COPY --chmod=0755 navin-cluster-agent /navin-cluster-agent

FROM ${RUST_IMAGE} AS build
ARG REVISION=unknown
WORKDIR /src
COPY . .
RUN NAVIN_COMMIT="$(printf %.12s "${REVISION}")" cargo build --release --locked \
        --package navin-cluster-agent --bin navin-cluster-agent --target "$(uname -m)-unknown-linux-musl" && \
    mv "target/$(uname -m)-unknown-linux-musl/release/navin-cluster-agent" /navin-cluster-agent

FROM frame
COPY --from=build --chmod=0755 /navin-cluster-agent /navin-cluster-agent

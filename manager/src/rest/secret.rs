//! The Secret that brings an identity into the cluster. CONTRACT section 3.

/// YAML of the Secret `navin-cluster-agent-identity`. The files are texts of printable ASCII lines,
/// which a literal block holds as they are; the namespace is a label, which may be all digits, or `no`.
pub(super) fn yaml(namespace: &str, files: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: navin-cluster-agent-identity\n  \
         namespace: \"{namespace}\"\ntype: Opaque\nstringData:\n"
    );
    for (name, content) in files {
        text.extend(["  ", name, ": |\n"]);
        for line in content.lines() {
            text.extend(["    ", line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_file_is_indented_below_its_name() {
        let text = yaml("navin", &[("ca.crt", "-----BEGIN X-----\nAA==\n-----END X-----\n"), ("a", "{}")]);
        assert!(text.contains("  namespace: \"navin\"\n"));
        assert!(text.ends_with(
            "stringData:\n  ca.crt: |\n    -----BEGIN X-----\n    AA==\n    -----END X-----\n  a: |\n    {}\n"
        ));
    }

    #[test]
    fn a_namespace_that_yaml_would_read_as_something_else_is_a_text() {
        for namespace in ["123", "no", "true", "null"] {
            assert!(yaml(namespace, &[]).contains(&format!("  namespace: \"{namespace}\"\n")));
        }
    }
}

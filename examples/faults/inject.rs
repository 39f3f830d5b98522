//! Begins a fault in a lane, and ends it.

use crate::certs::{Authority, Flaw, Shown};
use crate::lane::{Lane, public_authority, silent_resolver};
use crate::rows::{Fault, Resolver, Token};
use navin_test_support::{Door, Fate, Proxy, Server};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a token is rotated.
const ROTATED: Duration = Duration::from_secs(2);

/// A fault that is going on.
pub(crate) struct Running<'l> {
    lane: &'l Lane,
    fault: Fault,
    peer: Server,
    /// The replica that alone is hit.
    alone: Option<usize>,
    /// The token of the moment, where it rotates; and when it was made.
    token: Arc<Mutex<String>>,
    rotated: Instant,
    /// The replicas' own tokens.
    tokens: [String; 2],
}

impl<'l> Running<'l> {
    /// From now on it is so.
    pub(crate) fn begin(lane: &'l Lane, fault: &Fault, peer: Server, alone: Option<usize>) -> Self {
        let tokens = [0, 1].map(|number| {
            fs::read_to_string(lane.replicas[number].agent.token_file()).expect("a replica's token")
        });
        let token = Arc::new(Mutex::new(tokens[0].clone()));
        let mut running =
            Self { lane, fault: fault.clone(), peer, alone, token, rotated: Instant::now(), tokens };
        running.inject();
        running
    }

    fn inject(&mut self) {
        let (lane, peer) = (self.lane, self.peer);
        // What is held for the fault goes on under it.
        lane.wire.pass_all();
        match &self.fault {
            Fault::Door(door) => {
                for proxy in self.proxies() {
                    proxy.door(door.clone());
                    if *door == Door::Silent { proxy.fall_silent() } else { proxy.reset() }
                }
            }
            Fault::Forgets(idle) => {
                self.proxies().iter().for_each(|proxy| proxy.forget_after(Some(*idle)));
            }
            Fault::Answers(answer) | Fault::Lease(answer) => {
                let (answer, mut number) = (*answer, 0);
                let path = if matches!(self.fault, Fault::Lease(_)) { "/leases" } else { "" };
                let alone = self.alone.map(|replica| lane.replicas[replica].agent.pod().to_owned());
                lane.wire.rule(move |call, reply| {
                    let other = alone.as_ref().is_some_and(|alone| *alone != call.agent);
                    if call.server != peer || other || reply.is_some() || !call.path.contains(path) {
                        return Fate::Pass;
                    }
                    number += 1;
                    answer(number)
                });
            }
            Fault::Bent(bend) => {
                let bend = *bend;
                lane.wire
                    .rule(move |call, _| if call.server == peer { Fate::Bent(bend) } else { Fate::Pass });
            }
            Fault::Certificate(flaw) => self.show(Some(*flaw)),
            Fault::Name(resolver) => {
                let silent = *resolver == Resolver::Silent;
                if silent {
                    silent_resolver();
                }
                lane.forget_name(peer, silent);
                // The other peer's connections go on.
                self.proxies().iter().for_each(|proxy| proxy.reset());
            }
            Fault::Token(token) => self.spoil(*token),
            Fault::Stopped => lane.server(peer).pause(),
            Fault::Killed if peer == Server::Api => lane.world.cluster.stop(),
            Fault::Killed | Fault::Compacted => lane.server(peer).kill9(),
        }
    }

    /// To be called all the while.
    pub(crate) fn go_on(&mut self) {
        if matches!(self.fault, Fault::Token(Token::Rotated)) && self.rotated.elapsed() >= ROTATED {
            self.rotated = Instant::now();
            self.rotate();
        }
    }

    /// It is over.
    pub(crate) fn end(self) {
        let (lane, peer) = (self.lane, self.peer);
        lane.wire.pass_all();
        match &self.fault {
            Fault::Door(door) => {
                for proxy in self.proxies() {
                    proxy.door(Door::Open);
                    // What has fallen silent stays so.
                    if *door != Door::Silent {
                        proxy.reset();
                    }
                }
            }
            Fault::Forgets(_) => self.proxies().iter().for_each(|proxy| proxy.forget_after(None)),
            Fault::Answers(_) | Fault::Lease(_) | Fault::Bent(_) => {
                self.proxies().iter().for_each(|proxy| proxy.reset());
            }
            Fault::Certificate(_) => self.show(None),
            Fault::Name(_) => lane.resolve_names(),
            Fault::Token(_) => {
                for (replica, token) in lane.replicas.iter().zip(&self.tokens) {
                    fs::write(replica.agent.token_file(), token).expect("a token");
                }
            }
            Fault::Stopped => lane.server(peer).resume(),
            Fault::Killed if peer == Server::Gateway => lane.world.manager.restart(),
            Fault::Killed => lane.world.cluster.restart(),
            Fault::Compacted => {
                lane.world.cluster.compact();
                lane.server(peer).start_again();
                lane.world.cluster.wait_ready();
            }
        }
    }

    fn proxies(&self) -> Vec<&'l Proxy> {
        self.lane.proxies(self.peer, self.alone)
    }

    fn show(&self, flaw: Option<Flaw>) {
        let own = match self.peer {
            Server::Api => &self.lane.authorities[0],
            Server::Gateway => &self.lane.authorities[1],
        };
        let shown: Shown = match flaw {
            Some(Flaw::OtherIssuer) => {
                let name = if self.peer == Server::Api { "api" } else { "navin-manager root" };
                Authority::new(name).certificate(flaw)
            }
            Some(Flaw::PublicIssuer) => public_authority().0.certificate(flaw),
            _ => own.certificate(flaw),
        };
        for proxy in self.proxies() {
            proxy.show(&shown.chain, &shown.key);
            proxy.reset();
        }
    }

    fn spoil(&self, token: Token) {
        for replica in &self.lane.replicas {
            let file = replica.agent.token_file();
            let written = match token {
                Token::Rotated => continue,
                Token::Empty => fs::write(file, ""),
                Token::Odd => fs::write(file, "a\nb\r\nX-Other: c\u{0}\u{7f}"),
                Token::Missing => fs::remove_file(file),
                Token::Huge => fs::write(file, "a".repeat(1 << 20)),
                Token::Unknown => fs::write(file, "eyJhbGciOiJub25lIn0.e30."),
            };
            written.expect("the token's file");
        }
        if token == Token::Rotated {
            self.rotate();
            let current = Arc::clone(&self.token);
            self.lane.wire.rule(move |call, reply| {
                let token = current.lock().unwrap_or_else(PoisonError::into_inner);
                let stale = call.server == Server::Api && call.bearer.as_deref() != Some(token.trim());
                if reply.is_none() && stale { Fate::answer(401, "Unauthorized") } else { Fate::Pass }
            });
        }
    }

    /// Both replicas have one account, and may have one token.
    fn rotate(&self) {
        let namespace = &self.lane.world.namespace.name;
        let fresh = self.lane.world.cluster.service_account_token(namespace, "navin-cluster-agent");
        for replica in &self.lane.replicas {
            let file = replica.agent.token_file();
            let temporary = file.with_extension("new");
            fs::write(&temporary, &fresh).expect("a token");
            fs::rename(&temporary, file).expect("a token");
        }
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}

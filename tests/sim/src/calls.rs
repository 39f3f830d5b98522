//! Calls on their way: what leaves, lands, is answered, and what goes wrong with it.

use crate::answers::{name, refusal, response};
use crate::api::{Kind, Reply, Route};
use crate::chance::{keyed, mix};
use crate::faults::{CallFault, SECOND};
use crate::host::true_time;
use crate::manager::Manager;
use crate::replica::ROLES;
use crate::thread::Peer;
use crate::world::{Event, Flight, World};
use navin_cluster_agent::http::{HttpError, Method, Request};

/// How often a waiting poll is looked at.
const LOOK: u64 = SECOND / 4;

impl World {
    pub(crate) fn call(&mut self, slot: usize, thread: usize, serial: u64, peer: Peer, request: Request) {
        let now = self.now.get();
        let place = &mut self.slots[slot];
        let process = place.process;
        place.calls[thread] += 1;
        let number = mix(0x4_0000 + (slot as u64) * 8 + thread as u64, place.calls[thread]);
        let mut rng = keyed(self.seed, number ^ 0x55);
        let (out, back) = (rng.u64(200..20_000), rng.u64(200..20_000));
        let mut fault = None;
        if self.healed.is_none() && self.options.allowed.has(number) {
            fault = match &mut self.script {
                Some(script) => script.draw(now, name(request.method), &request.path),
                None => self.rates.draw(self.seed, number, peer, &request.path, name(request.method)),
            };
        }
        if request.path.contains("watch=1") {
            fault = crate::streams::harmless(fault);
        }
        if let Some(fault) = fault {
            self.stats.calls[fault.kind()] += 1;
            if peer == Peer::Kube || fault.pauses() {
                self.disturb(slot, now);
            }
            self.happened.push(number);
        }
        let Some(replica) = &self.slots[slot].replica else { return };
        let sender = self.checker.sent(replica, process, thread, &request, &self.manager);
        self.trace.note(now, &[2, slot as u64, thread as u64], &request.path, || {
            let fault = fault.map_or(String::new(), |fault| format!("   << {fault:?} fault={number}"));
            let what = crate::speech::describe(&request);
            format!("r{slot} {:<8} {} {what}{fault}", ROLES[thread], name(request.method))
        });
        let hang = rng.bool();
        let mut pause = 0;
        let mut lands = Some(out);
        match fault {
            Some(CallFault::CrashBefore) => {
                self.kill(slot, Some("crashes before a call"));
                return;
            }
            Some(CallFault::RequestLost) => lands = None,
            Some(CallFault::RequestDelayed(later) | CallFault::CrashThenLands(later)) => {
                lands = Some(out + later);
                self.last_landing = self.last_landing.max(now + out + later);
            }
            Some(CallFault::Paused(length)) => {
                pause = length;
                self.pause(slot, now + length);
            }
            Some(CallFault::PausedAfter(length)) => self.pause(slot, now + length),
            _ => {}
        }
        let away = match peer {
            Peer::Kube => self.conditions.api_away,
            Peer::Gateway => self.conditions.gateway_away,
        }
        .max(self.conditions.cut_off[slot]);
        let unsent = fault == Some(CallFault::Unsent) || (away > now + pause && !hang);
        if away > now + pause {
            lands = None;
        }
        self.last_flight += 1;
        let call = self.last_flight;
        let flight = Flight {
            slot,
            process,
            thread,
            serial,
            peer,
            request,
            number,
            fault,
            sender,
            back,
            answered: false,
            until: None,
        };
        if unsent {
            self.flights.insert(call, Flight { fault: Some(CallFault::Unsent), ..flight });
            self.after(pause + rng.u64(1_000..5 * SECOND), Event::Answer(call, Reply::status(0, "", "")));
        } else if let Some(lands) = lands {
            self.flights.insert(call, flight);
            self.after(pause + lands, Event::Land(call));
            if let Some(CallFault::RequestDoubled(later)) = fault {
                self.last_landing = self.last_landing.max(now + lands + later);
                self.after(pause + lands + later, Event::Land(call));
            }
        }
        if let Some(CallFault::CrashThenLands(_)) = fault {
            self.kill(slot, Some("crashes, and its call lands later"));
        }
    }

    pub(crate) fn land(&mut self, call: u64) {
        let Some(flight) = self.flights.get(&call) else { return };
        let (slot, peer, fault, path) = (flight.slot, flight.peer, flight.fault, flight.request.path.clone());
        let refused = match (fault, peer) {
            (Some(CallFault::Refused(status)), _) => Some(status),
            (_, Peer::Kube) if self.conditions.api_answers.1 > self.now.get() => {
                Some(self.conditions.api_answers.0)
            }
            (_, Peer::Gateway) if self.conditions.gateway_answers.1 > self.now.get() => {
                Some(self.conditions.gateway_answers.0)
            }
            _ => None,
        };
        let watched =
            path.split_once("?watch=1").and_then(|(of, query)| Some((Route::parse(of)?.kind, query)));
        let reply = match (refused, peer) {
            (Some(status), _) => Some(refusal(status, peer)),
            (None, Peer::Kube) => match watched {
                Some((kind, query)) => {
                    self.open_stream(call, kind, query);
                    Some(Self::head())
                }
                None => Some(self.at_api(call)),
            },
            (None, Peer::Gateway) => self.at_gateway(call, &path),
        };
        if fault == Some(CallFault::CrashAfter) {
            self.kill(slot, Some("crashes after a call had its effect"));
        }
        if let Some(reply) = reply {
            self.reply(call, reply);
        }
    }

    fn at_api(&mut self, call: u64) -> Reply {
        let time = format!("{:.0}", true_time(self.now.get()));
        let Some(flight) = self.flights.get_mut(&call) else { return Reply::status(500, "", "") };
        let request = &flight.request;
        let reply = self.api.handle(name(request.method), &request.path, request.body.as_deref(), &time);
        let (status, slot) = (reply.status, flight.slot);
        let path = request.path.clone();
        let sender = flight.sender.clone();
        for effect in std::mem::take(&mut self.api.effects) {
            self.stats.writes += u64::from(effect.kind == Kind::Component);
            if let Some(flight) = self.flights.get_mut(&call) {
                flight.sender.repaired = crate::invariants::writes::repaired(&effect, &sender);
            }
            self.checker.effect(&effect, Some(&sender), &self.manager, &mut self.stats);
            self.trace
                .note(self.now.get(), &[3, slot as u64], &effect.name, || crate::speech::effect(&effect));
        }
        if let Some(flight) = self.flights.get_mut(&call) {
            self.checker.seen(&mut flight.sender, &path);
        }
        self.trace.note(self.now.get(), &[4, u64::from(status)], "", || {
            format!(
                "   r{slot} {:<8} -> {status} {}",
                ROLES[sender.thread],
                path.split('?').next().unwrap_or("")
            )
        });
        self.send_lines();
        reply
    }

    /// None where a poll waits.
    fn at_gateway(&mut self, call: u64, path: &str) -> Option<Reply> {
        let flight = self.flights.get_mut(&call)?;
        if let Some(wait) = path.strip_prefix("/v1/cluster-agent/commands?wait_s=") {
            flight.until = Some(self.now.get() + wait.parse::<u64>().unwrap_or(0) * SECOND);
            self.look(call);
            return None;
        }
        let body = flight.request.body.clone().unwrap_or_default();
        let reply = if path == "/v1/cluster-agent/receipts" {
            let reply = self.manager.receipt(&body);
            self.checker.receipt_landed(&body, reply.status);
            reply
        } else {
            Reply::of(&serde_json::json!({ "inventory": "kept" }))
        };
        let slot = flight.slot;
        self.trace.note(self.now.get(), &[5, u64::from(reply.status)], path, || {
            format!("   r{slot}          -> {} {path}", reply.status)
        });
        Some(reply)
    }

    /// A poll that waits: is there something for it?
    pub(crate) fn look(&mut self, call: u64) {
        let now = self.now.get();
        let Some(until) = self.flights.get(&call).and_then(|flight| flight.until) else { return };
        match self.manager.take_due(now) {
            Some(reply) => self.reply(call, reply),
            None if now >= until => self.reply(call, Manager::nothing()),
            None => self.push(until.min(now + LOOK), Event::Look(call)),
        }
    }

    /// Sends an answer on its way back.
    fn reply(&mut self, call: u64, mut reply: Reply) {
        let Some(flight) = self.flights.get_mut(&call) else { return };
        if flight.answered {
            self.flights.remove(&call);
            return;
        }
        flight.answered = true;
        let mut back = flight.back;
        match flight.fault {
            Some(CallFault::AnswerLost) => return,
            Some(CallFault::AnswerDelayed(later)) => back += later,
            Some(CallFault::DoneThenError) => reply = refusal(500, flight.peer),
            _ => {}
        }
        self.after(back, Event::Answer(call, reply));
    }

    pub(crate) fn answer(&mut self, call: u64, reply: Reply) {
        let now = self.now.get();
        let Some(flight) = self.flights.get(&call) else { return };
        let (slot, thread) = (flight.slot, flight.thread);
        let place = &self.slots[slot];
        if place.paused_until > now {
            self.push(place.paused_until, Event::Answer(call, reply));
            return;
        }
        let Some(replica) = place.replica.as_ref().filter(|_| place.process == flight.process) else {
            return;
        };
        if replica.threads[thread].serial != flight.serial {
            return;
        }
        let answer = if flight.fault == Some(CallFault::Unsent) {
            Err(HttpError::Unsent("no route".to_owned()))
        } else {
            let cut = flight.fault == Some(CallFault::BodyCut);
            let at = replica.life.monotonic();
            // A refusal is one without its body, too.
            if flight.request.method == Method::Get && (!cut || reply.status >= 400) {
                self.checker.read(&flight.sender, &flight.request.path, reply.status, at);
            }
            if !cut {
                self.checker.answered(&flight.sender, flight.peer, reply.status, at);
                self.checker.ended(&flight.sender, reply.status, at);
            }
            self.trace.note(now, &[6, slot as u64, thread as u64, u64::from(reply.status)], "", || {
                format!(
                    "r{slot} {:<8} reads {} {}",
                    ROLES[thread],
                    reply.status,
                    crate::speech::answer(&reply)
                )
            });
            if self.streams_for(call) { self.stream_head(call) } else { Ok(response(reply, cut, now)) }
        };
        if !matches!(flight.fault, Some(CallFault::RequestDoubled(_))) {
            self.flights.remove(&call);
        }
        self.resume(slot, thread, Some(answer));
    }
}

//! The agent's own code in a simulated cluster.
//!
//! Two or three replicas, each thread of them one coroutine, run against a model of the API server, of the
//! manager and of each pod's inbox, in virtual time and in an order that a seed decides. Processes crash, calls are
//! lost, delayed and doubled, clocks step, the manager is away for up to an hour, people edit what the agent keeps,
//! and after every step what `invariants` says is checked.
//!
//! In reading order: [`world`] (the scheduler), its `queue` and `running` (the processes in it), `calls`, `events` and
//! [`files`] (what happens), [`replica`], `loops` and [`thread`] (the agent in it), [`host`] and [`identity`] (what it
//! stands on), [`api`], its `streams` and `answers`, [`manager`] and [`folder`] (the models), `plan`, of [`faults`],
//! [`seasons`] and [`workload`] by [`chance`] (a [`script`] takes its place), [`checker`], `invariants`, `sample`,
//! [`history`] and [`stored`] (what must hold), [`shrink`] (why it did not), [`speech`], [`stats`] and [`trace`] (what is
//! shown of it).

mod answers;
pub mod api;
mod calls;
pub mod chance;
pub mod checker;
mod events;
pub mod faults;
pub mod files;
pub mod folder;
pub mod history;
pub mod host;
pub mod identity;
mod invariants;
mod loops;
pub mod manager;
mod plan;
mod queue;
pub mod replica;
mod running;
mod sample;
pub mod script;
pub mod seasons;
pub mod shrink;
pub mod speech;
pub mod stats;
pub mod stored;
mod streams;
pub mod thread;
pub mod trace;
pub mod workload;
pub mod world;

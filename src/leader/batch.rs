//! Writes to components, in the order that CONTRACT section 6 demands: read the component, read the Lease, check the
//! deadline, write. One reading of the Lease serves a batch whose components were all read before it.

use super::World;
use super::store::{self, Stop};
use crate::rules::component::Write;
use crate::rules::election::Tenure;
use std::time::Duration;

/// Most names in one batch, so that none waits long for others.
pub(super) const TOGETHER: usize = 32;
/// How long components are read before the writes that follow are sent.
const READ_FOR: Duration = Duration::from_secs(1);
/// Memory of what is planned at which no more is read, in bytes. The last object comes on top, as read and as planned.
const HELD_MOST: usize = 8 * 1024 * 1024;
/// Pause before a batch is begun again whose reading of the Lease got no answer.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// How long an outcome waits for others to be recorded with it.
const HELD_BACK: Duration = Duration::from_millis(200);

/// A write that is planned for `key`, and the generation of the reading that it rests on.
pub(super) struct Planned<K> {
    pub(super) key: K,
    pub(super) write: Write,
    pub(super) before: Option<i64>,
}

/// Plans a write for each of what is `due`, which rests on a fresh reading, and sends them. What is left over for
/// lack of time is due as before; where the Lease could not be read nothing was sent, and the keys come back.
pub(super) fn run<All, K>(
    world: &World,
    tenure: &Tenure,
    all: &mut All,
    due: impl IntoIterator<Item = K>,
    plan: impl Fn(&mut All, K) -> Option<Planned<K>>,
    send: impl Fn(&mut All, Planned<K>),
) -> Result<Vec<K>, Stop> {
    let began = world.clock.monotonic();
    let (mut planned, mut held) = (Vec::new(), 0_usize);
    for key in due.into_iter().take(TOGETHER) {
        store::may_act(world, tenure)?;
        if let Some(write) = plan(all, key) {
            held = held.saturating_add(write.write.memory());
            planned.push(write);
        }
        if world.clock.monotonic().saturating_sub(began) >= READ_FOR || held >= HELD_MOST {
            break;
        }
    }
    if !planned.is_empty() {
        match store::still_ours(world, tenure) {
            Err(Stop::Unavailable { .. }) => {
                return Ok(planned.into_iter().map(|planned| planned.key).collect());
            }
            ours => ours?,
        }
    }
    let mut first_sent = None;
    for write in planned {
        store::may_act(world, tenure)?;
        send(all, write);
        let now = world.clock.monotonic();
        // What has ended is recorded before it has waited long, and commands come first: the rest is read anew.
        if now.saturating_sub(*first_sent.get_or_insert(now)) >= HELD_BACK {
            break;
        }
    }
    Ok(Vec::new())
}

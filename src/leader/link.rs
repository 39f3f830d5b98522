//! The link to the manager as the leader sees it (CONTRACT section 7): each change is told once, and one that
//! stays offline hands the Lease over.

use super::store::Stop;
use super::{Leader, Reign, World};
use crate::notices::About;
use crate::rules::election::Tenure;
use crate::rules::link::{HAND_OVER_AFTER, Link};
use std::sync::Arc;
use std::time::Duration;

/// The link is not judged sooner again for the sake of a change that is due.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What the leader knows of the link; it outlasts a takeover that is done again.
#[derive(Default)]
pub(super) struct Watched {
    /// The leadership in which it was judged.
    tenure: Option<Arc<Tenure>>,
    link: Option<Link>,
    /// That the manager is away was told, and not that it is back.
    away: bool,
    offline_since: Option<Duration>,
    /// When it is to be judged again at the latest.
    look_at: Duration,
}

impl Watched {
    /// How it was judged last.
    #[cfg(test)]
    pub(super) fn now(&self) -> Option<Link> {
        self.link
    }

    /// When to look again.
    pub(super) fn due(&self) -> Duration {
        self.look_at
    }
}

impl Leader {
    /// Judges the link; hands the Lease over where the manager has been out of reach for long.
    pub(super) fn watch_link(&mut self) -> Result<(), Stop> {
        let Some(reign) = &self.reign else { return Ok(()) };
        let (world, watched) = (&self.world, &mut self.link);
        let now = world.clock.monotonic();
        let link = judge(world, reign, now);
        if watched.tenure.as_ref() != Some(&reign.tenure) {
            let tenure = Some(Arc::clone(&reign.tenure));
            *watched = Watched { tenure, away: watched.away, ..Watched::default() };
        }
        let before = watched.link.replace(link);
        if before != Some(link) {
            watched.away = announce(world, before, link, watched.away);
            watched.offline_since = (link == Link::Offline).then_some(now);
        }
        let since = world.contact.answered().unwrap_or_default().max(reign.tenure.since);
        let next = watched.offline_since.map_or_else(
            || since.saturating_add(world.trust.config.offline_after()),
            |offline_since| offline_since.saturating_add(HAND_OVER_AFTER),
        );
        // Not at once again: an answer to a request of before changes the link without a change of `since`.
        watched.look_at = next.max(now.saturating_add(LOOK_AGAIN));
        match watched.offline_since {
            Some(since) if now.saturating_sub(since) >= HAND_OVER_AFTER => Err(Stop::HandOver),
            Some(_) | None => Ok(()),
        }
    }
}

/// The link at `now`.
pub(super) fn judge(world: &World, reign: &Reign, now: Duration) -> Link {
    let offline_after = world.trust.config.offline_after();
    Link::judge(now, reign.tenure.since, world.contact.answered(), offline_after)
}

/// The one place that tells of a change; `before` is none at the beginning of a leadership. Whether people
/// have been told that the manager is away: once, until it is back.
fn announce(world: &World, before: Option<Link>, link: Link, away: bool) -> bool {
    let was = before.map_or("none", Link::as_str);
    match link {
        Link::Online | Link::Connecting => log::info!("link={} was={was}", link.as_str()),
        Link::Offline => log::warn!("link=offline was={was}: sensitive commands are refused"),
    }
    match link {
        Link::Connecting => away,
        Link::Online => {
            world.board.link(link);
            if away {
                world.notices.normal("Online", About::Pod, "the manager answers again");
            }
            false
        }
        Link::Offline => {
            if !away {
                world.board.link(link);
                let message = "the manager does not answer: sensitive commands are refused; see the gateway, and the way to it";
                world.notices.warning("Offline", About::Pod, message);
            }
            true
        }
    }
}

//! Where a host is. ureq asks before each request, also where it has a connection already.

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Takes an address as it is; a name is looked up by ureq, which starts a thread for each look-up.
#[derive(Debug, Default)]
pub(super) struct Addresses(DefaultResolver);

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let target = uri.scheme().zip(uri.authority());
        let address =
            target.and_then(|(scheme, authority)| DefaultResolver::host_and_port(scheme, authority));
        let Some(address) = address.and_then(|address| address.parse().ok()) else {
            return self.0.resolve(uri, config, timeout);
        };
        let mut found = self.empty();
        found.push(address);
        Ok(found)
    }
}

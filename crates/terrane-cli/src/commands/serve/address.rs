//! Addresses to listen on, by number or by name.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

/// The addresses of one host and port.
#[derive(Debug, Clone)]
pub(super) struct Addresses(Vec<SocketAddr>);

impl Addresses {
    /// Parses a host and a port. A name stands for all addresses of it that this host can listen on, such as
    /// those of IPv4 and IPv6 for `localhost`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self(vec![address]));
        }
        let wrong = |reason| {
            format!("{reason}; expected HOST:PORT, such as 127.0.0.1:7000 or localhost:7000")
        };
        let found = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
        let mut found: Vec<SocketAddr> = found.collect();
        found.sort();
        found.dedup();
        // A host without IPv6 may still know the name of its IPv6 loopback.
        let is_usable = |address: &SocketAddr| TcpListener::bind((address.ip(), 0)).is_ok();
        let usable: Vec<SocketAddr> = found.iter().copied().filter(is_usable).collect();
        match (usable.is_empty(), found.is_empty()) {
            (_, true) => Err(wrong("the name has no address".to_owned())),
            // Listening names the address that fails.
            (true, false) => Ok(Self(found)),
            (false, false) => Ok(Self(usable)),
        }
    }

    /// Returns the addresses, of which there is at least one.
    pub(super) fn all(&self) -> &[SocketAddr] {
        &self.0
    }
}

/// Returns all addresses of a list.
pub(super) fn flatten(addresses: &[Addresses]) -> Vec<SocketAddr> {
    addresses.iter().flat_map(|addresses| &addresses.0).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_addresses() {
        let parse = |text| Addresses::parse(text).map(|found| found.0);
        assert_eq!(parse("127.0.0.1:7000").unwrap(), ["127.0.0.1:7000".parse().unwrap()]);
        assert_eq!(parse("[::1]:0").unwrap(), ["[::1]:0".parse().unwrap()]);
        let local = parse("localhost:7000").unwrap();
        assert!(local.iter().all(|it| it.ip().is_loopback() && it.port() == 7000), "{local:?}");
        assert!(local.contains(&"127.0.0.1:7000".parse().unwrap()), "{local:?}");
        for wrong in ["localhost", "7000", "", "127.0.0.1:99999"] {
            assert!(parse(wrong).unwrap_err().contains("expected HOST:PORT"), "{wrong}");
        }
    }
}

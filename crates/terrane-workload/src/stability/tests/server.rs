//! A store whose writes take a given virtual time.

use super::virtual_clock::VirtualClock;
use crate::error::StoreError;
use crate::stability::Clock;
use crate::store::{Direction, Store};

/// Computes the service time of a write from its start time.
type Service = Box<dyn Fn(u64) -> u64 + Send + Sync>;

pub(super) struct Server<'a> {
    clock: &'a VirtualClock,
    service: Service,
}

impl<'a> Server<'a> {
    pub(super) fn new(
        clock: &'a VirtualClock,
        service: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self { clock, service: Box::new(service) }
    }

    /// Returns a server with a service time of `nanos` that stalls from `begin` to `begin + stall`.
    pub(super) fn stalling(clock: &'a VirtualClock, nanos: u64, begin: u64, stall: u64) -> Self {
        Self::new(clock, move |start| {
            let done = start + nanos;
            if (begin..begin + stall).contains(&start) {
                begin + stall + nanos - start
            } else {
                done - start
            }
        })
    }

    pub(super) fn clock(&self) -> &VirtualClock {
        self.clock
    }
}

impl Store for Server<'_> {
    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<(), StoreError> {
        let start = self.clock.now();
        self.clock.wait_until(start + (self.service)(start));
        Ok(())
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(key, value)
    }

    fn write_batch(&self, _puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        unreachable!("the drivers write single keys")
    }

    fn delete(&self, _key: &[u8]) -> Result<(), StoreError> {
        unreachable!("the drivers delete nothing")
    }

    fn get(&self, _key: &[u8], _visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn scan(
        &self,
        _start: Option<&[u8]>,
        _direction: Direction,
        _limit: usize,
        _visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        Ok(0)
    }

    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

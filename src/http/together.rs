//! A request that leaves in one piece. ureq sends its head and its body one after the other, each at once: two
//! records of TLS, two packets, and a server that is woken twice.

use super::BUFFER;
use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// Puts [`Held`] over the connections that are made.
#[derive(Debug)]
pub(super) struct Together;

impl<In: Transport> Connector<In> for Together {
    type Out = Held<In>;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<Held<In>>, Error> {
        Ok(chained.map(|transport| Held { transport, waiting: Vec::new() }))
    }
}

/// A connection that sends when an answer is awaited, or when a buffer is full.
#[derive(Debug)]
pub(super) struct Held<In> {
    transport: In,
    /// Less than [`BUFFER`], in bytes, that is to be sent.
    waiting: Vec<u8>,
}

impl<In: Transport> Held<In> {
    fn send(&mut self, timeout: NextTimeout) -> Result<(), Error> {
        let mut rest = self.waiting.as_slice();
        while !rest.is_empty() {
            let output = self.transport.buffers().output();
            let (now, later) = rest.split_at(rest.len().min(output.len()));
            let Some(place) = output.get_mut(..now.len()) else { break };
            place.copy_from_slice(now);
            self.transport.transmit_output(now.len(), timeout)?;
            rest = later;
        }
        self.waiting.clear();
        Ok(())
    }
}

impl<In: Transport> Transport for Held<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let output = self.transport.buffers().output();
        self.waiting.extend_from_slice(output.get(..amount).unwrap_or(output));
        if self.waiting.len() < BUFFER { Ok(()) } else { self.send(timeout) }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.send(timeout)?;
        self.transport.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use ureq::Timeout;
    use ureq::unversioned::transport::LazyBuffers;
    use ureq::unversioned::transport::time::Duration as Limit;

    #[derive(Debug)]
    struct Pieces {
        buffers: LazyBuffers,
        sent: Vec<Vec<u8>>,
    }

    impl Transport for Pieces {
        fn buffers(&mut self) -> &mut dyn Buffers {
            &mut self.buffers
        }

        fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
            self.sent.push(self.buffers.output()[..amount].to_vec());
            Ok(())
        }

        fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
            Ok(false)
        }

        fn is_open(&mut self) -> bool {
            true
        }
    }

    /// What is sent of these writes, piece by piece, when an answer is awaited.
    fn sent(writes: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let transport = Pieces { buffers: LazyBuffers::new(BUFFER, BUFFER), sent: Vec::new() };
        let mut held = Held { transport, waiting: Vec::new() };
        let limit = || NextTimeout {
            after: Limit::Exact(Duration::from_secs(1)),
            reason: Timeout::Global,
            per_read: None,
            per_write: None,
        };
        for write in writes {
            held.buffers().output()[..write.len()].copy_from_slice(write);
            held.transmit_output(write.len(), limit()).unwrap();
        }
        for _ in 0..2 {
            held.await_input(limit()).unwrap();
        }
        held.transport.sent
    }

    #[test]
    fn a_head_and_its_body_leave_in_one_piece_and_a_long_body_in_full_ones_with_nothing_lost_or_twice() {
        let (head, body) = (b"PUT / HTTP/1.1\r\n\r\n".to_vec(), b"{}".to_vec());
        assert_eq!(sent(&[head.clone(), body.clone()]), [[head.clone(), body].concat()]);
        let long: Vec<Vec<u8>> = (0..5).map(|number| vec![number; BUFFER]).collect();
        let pieces = sent(&[vec![head.clone()], long.clone()].concat());
        assert_eq!(pieces.concat(), [head, long.concat()].concat());
        assert!(pieces.len() <= 10, "{}", pieces.len());
    }
}

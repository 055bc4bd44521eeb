//! Ends of channels for code that blocks.

use bytes::{Buf, Bytes};
use std::io::{self, Read, Write};
use tokio::sync::mpsc::{Receiver, Sender};

/// Reads what a channel brings.
pub(in crate::docker) struct InputPipe {
    comes: Receiver<Bytes>,
    piece: Bytes,
}

impl InputPipe {
    pub fn new(comes: Receiver<Bytes>) -> InputPipe {
        InputPipe { comes, piece: Bytes::new() }
    }
}

impl Read for InputPipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.comes.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = self.piece.as_ref().read(into)?;
        self.piece.advance(length);
        Ok(length)
    }
}

/// Writes into a channel.
pub(in crate::docker) struct OutputPipe(pub Sender<Bytes>);

impl Write for OutputPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(bytes));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

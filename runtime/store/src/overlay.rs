//! A file that is only read: what is written to it stays in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::medium::RawFile;

const BLOCK: usize = 4096;

#[derive(Debug)]
pub(crate) struct Overlay {
    below: Box<dyn RawFile>,
    above: Mutex<Above>,
}

#[derive(Debug, Default)]
struct Above {
    /// Once it was changed.
    len: Option<u64>,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Overlay {
    pub(crate) fn new(below: Box<dyn RawFile>) -> Self {
        Self { below, above: Mutex::default() }
    }

    fn above(&self) -> MutexGuard<'_, Above> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn len_of(&self, above: &Above) -> io::Result<u64> {
        above.len.map_or_else(|| self.below.size(), Ok)
    }

    /// A block of the file below, with zeros behind its end.
    fn read_below(&self, block: u64) -> io::Result<Box<[u8; BLOCK]>> {
        let start = block * BLOCK as u64;
        let there = usize::try_from(self.below.size()?.saturating_sub(start)).unwrap_or(BLOCK).min(BLOCK);
        let mut bytes = Box::new([0; BLOCK]);
        self.below.read(start, &mut bytes[..there])?;
        Ok(bytes)
    }
}

impl RawFile for Overlay {
    fn size(&self) -> io::Result<u64> {
        self.len_of(&self.above())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let above = self.above();
        if offset.saturating_add(out.len() as u64) > self.len_of(&above)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for_blocks(offset, out.len(), |block, within, part| {
            match above.blocks.get(&block) {
                Some(bytes) => out[part].copy_from_slice(&bytes[within]),
                None => out[part].copy_from_slice(&self.read_below(block)?[within]),
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut above = self.above();
        for_blocks(offset, data.len(), |block, within, part| {
            let bytes = match above.blocks.remove(&block) {
                Some(bytes) => bytes,
                None => self.read_below(block)?,
            };
            above.blocks.entry(block).or_insert(bytes)[within].copy_from_slice(&data[part]);
            Ok(())
        })?;
        let end = offset + data.len() as u64;
        above.len = Some(self.len_of(&above)?.max(end));
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut above = self.above();
        let before = self.len_of(&above)?;
        // What was cut off must not come back when the file gets longer again.
        for block in len / BLOCK as u64..before.div_ceil(BLOCK as u64) {
            let keep = usize::try_from(len.saturating_sub(block * BLOCK as u64)).unwrap_or(BLOCK).min(BLOCK);
            let mut bytes = match above.blocks.remove(&block) {
                Some(bytes) => bytes,
                None => self.read_below(block)?,
            };
            bytes[keep..].fill(0);
            above.blocks.insert(block, bytes);
        }
        above.len = Some(len);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls `each` with every block that is touched, the range within it, and the range of the buffer.
fn for_blocks(
    offset: u64,
    len: usize,
    mut each: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let part = (BLOCK - within).min(len - done);
        each(at / BLOCK as u64, within..within + part, done..done + part)?;
        done += part;
    }
    Ok(())
}

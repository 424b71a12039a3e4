//! WebSockets (RFC 6455), the client's side, as far as streams of processes need them.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use uuid::Uuid;

use super::failure::Failure;

/// Longer messages are none of a process' output.
const MAX_MESSAGE: usize = 16 << 20;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// What the server sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Data(Bytes),
    /// To be answered with the same bytes.
    Ping(Bytes),
    Close,
}

/// Reads messages.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    input: R,
    /// What has come of a message that comes in parts; pings may stand between them.
    begun: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, begun: Vec::new() }
    }

    /// The next message. Must not be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<Message, Failure> {
        loop {
            let (is_last, opcode, data) = self.frame(MAX_MESSAGE - self.begun.len()).await?;
            match opcode {
                CLOSE => return Ok(Message::Close),
                PING => return Ok(Message::Ping(data.into())),
                PONG => continue,
                CONTINUATION | TEXT | BINARY => self.begun.extend_from_slice(&data),
                _ => return Err(Failure::other("the agent breaks the protocol: an unknown kind of frame")),
            }
            if is_last {
                return Ok(Message::Data(std::mem::take(&mut self.begun).into()));
            }
        }
    }

    async fn frame(&mut self, room: usize) -> Result<(bool, u8, Vec<u8>), Failure> {
        let input = &mut self.input;
        let mut head = [0; 2];
        input.read_exact(&mut head).await?;
        let length = match head[1] & 0x7f {
            126 => u64::from(input.read_u16().await?),
            127 => input.read_u64().await?,
            short => u64::from(short),
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= room);
        let length =
            length.ok_or_else(|| Failure::other("the agent breaks the protocol: a message that is too long"))?;
        let mut data = vec![0; length];
        input.read_exact(&mut data).await?;
        Ok((head[0] & 0x80 != 0, head[0] & 0x0f, data))
    }
}

/// Writes messages.
#[derive(Debug)]
pub(crate) struct Writer<W>(pub(crate) W);

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// A message on a channel: its number stands before the data.
    pub(crate) async fn channel(&mut self, channel: u8, data: &[u8]) -> std::io::Result<()> {
        self.frame(BINARY, &[&[channel], data].concat()).await
    }

    /// The answer to a ping.
    pub(crate) async fn pong(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.frame(PONG, data).await
    }

    async fn frame(&mut self, opcode: u8, data: &[u8]) -> std::io::Result<()> {
        let mut frame = Vec::with_capacity(data.len() + 14);
        frame.push(0x80 | opcode);
        match (u8::try_from(data.len()), u16::try_from(data.len())) {
            (Ok(length @ 0..=125), _) => frame.push(0x80 | length),
            (_, Ok(length)) => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&length.to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(data.len() as u64).to_be_bytes());
            }
        }
        let mask = random();
        frame.extend_from_slice(&mask[..4]);
        frame.extend(data.iter().zip(mask[..4].iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.0.write_all(&frame).await?;
        self.0.flush().await
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random() -> [u8; 16] {
    *Uuid::new_v4().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_as_they_were_sent() {
        let mut sent = Vec::new();
        for data in [vec![1; 5], vec![2; 300], vec![3; 70_000]] {
            let mut written = Vec::new();
            Writer(&mut written).channel(7, &data).await.expect("memory");
            assert_eq!(written[1] & 0x80, 0x80, "clients mask");
            // The same without the mask, as a server sends it.
            let header = written.len() - data.len() - 1 - 4;
            let mask: [u8; 4] = written[header..header + 4].try_into().expect("four bytes");
            sent.extend_from_slice(&[written[0], written[1] & 0x7f]);
            sent.extend_from_slice(&written[2..header]);
            sent.extend(written[header + 4..].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        }
        sent.extend_from_slice(&[0x02, 1, b'a', 0x89, 0, 0x80, 1, b'b', 0x88, 0]);
        let mut reader = Reader::new(sent.as_slice());
        for data in [vec![1; 5], vec![2; 300], vec![3; 70_000]] {
            let wanted = Message::Data([vec![7], data].concat().into());
            assert_eq!(reader.next().await.expect("a message"), wanted);
        }
        assert_eq!(reader.next().await.expect("a ping"), Message::Ping(Bytes::new()));
        assert_eq!(reader.next().await.expect("in parts"), Message::Data("ab".into()));
        assert_eq!(reader.next().await.expect("an end"), Message::Close);
        assert!(reader.next().await.is_err());
    }

    #[tokio::test]
    async fn no_memory_is_taken_on_the_word_of_a_header() {
        let mut huge = vec![0x82, 127];
        huge.extend_from_slice(&u64::MAX.to_be_bytes());
        assert!(Reader::new(huge.as_slice()).next().await.is_err());
    }
}

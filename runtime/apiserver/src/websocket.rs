//! WebSockets (RFC 6455), the server's side: the handshake, and messages in both directions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Of the RFC.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longer messages end the connection: clients of Kubernetes send less than 64 KiB.
const MAX_MESSAGE: usize = 1 << 20;
const MAX_CONTROL: usize = 125;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// The answer to a client's key.
pub(crate) fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}{MAGIC}").as_bytes()))
}

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Data, text or not.
    Data(Bytes),
    /// To be answered with the same bytes.
    Ping(Bytes),
    /// The client closes the connection.
    Close,
}

/// Why a connection can't go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the connection is lost: {0}")]
    Lost(#[from] std::io::Error),
    #[error("the client breaks the protocol: {0}")]
    Protocol(&'static str),
}

/// Reads messages.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    input: R,
    /// What has come of a message that comes in parts; control frames may stand between them.
    begun: Option<BytesMut>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, begun: None }
    }

    /// The next message. Must not be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<Message, Broken> {
        loop {
            let room = MAX_MESSAGE - self.begun.as_ref().map_or(0, BytesMut::len);
            let (is_last, opcode, data) = self.frame(room).await?;
            let message = match (opcode, self.begun.take()) {
                (CLOSE, _) => return Ok(Message::Close),
                (PING, begun) => {
                    self.begun = begun;
                    return Ok(Message::Ping(data.freeze()));
                }
                (PONG, begun) => {
                    self.begun = begun;
                    continue;
                }
                (TEXT | BINARY, None) => data,
                (CONTINUATION, Some(mut message)) => {
                    message.extend_from_slice(&data);
                    message
                }
                (TEXT | BINARY, Some(_)) => return Err(Broken::Protocol("a message begins inside another")),
                (CONTINUATION, None) => return Err(Broken::Protocol("a continuation of nothing")),
                _ => return Err(Broken::Protocol("unknown kind of frame")),
            };
            if is_last {
                return Ok(Message::Data(message.freeze()));
            }
            self.begun = Some(message);
        }
    }

    async fn frame(&mut self, room: usize) -> Result<(bool, u8, BytesMut), Broken> {
        let mut head = [0; 2];
        self.input.read_exact(&mut head).await?;
        let (is_last, opcode) = (head[0] & 0x80 != 0, head[0] & 0x0f);
        if head[0] & 0x70 != 0 {
            return Err(Broken::Protocol("an extension that was not agreed on"));
        }
        if head[1] & 0x80 == 0 {
            return Err(Broken::Protocol("a frame without a mask"));
        }
        let length = match head[1] & 0x7f {
            126 => u64::from(self.input.read_u16().await?),
            127 => self.input.read_u64().await?,
            short => u64::from(short),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let is_control = opcode & 0x8 != 0;
        if is_control && (length > MAX_CONTROL || !is_last) {
            return Err(Broken::Protocol("a control frame that is too long or in parts"));
        }
        if !is_control && length > room {
            return Err(Broken::Protocol("a message that is too long"));
        }
        let mut mask = [0; 4];
        self.input.read_exact(&mut mask).await?;
        // Not trusted with the length alone: memory is taken as bytes come.
        let mut data = BytesMut::with_capacity(length.min(64 << 10));
        let mut left = (&mut self.input).take(length as u64);
        while data.len() < length {
            if left.read_buf(&mut data).await? == 0 {
                return Err(Broken::Lost(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        for (byte, mask) in data.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        Ok((is_last, opcode, data))
    }
}

/// Writes messages.
#[derive(Debug)]
pub(crate) struct Writer<W>(pub(crate) W);

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// A message on a channel: its number stands before the data.
    pub(crate) async fn channel(&mut self, channel: u8, data: &[u8]) -> std::io::Result<()> {
        self.frame(BINARY, &[&[channel], data]).await
    }

    /// The answer to a ping.
    pub(crate) async fn pong(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.frame(PONG, &[data]).await
    }

    /// The last message: all is well.
    pub(crate) async fn close(&mut self, code: u16) -> std::io::Result<()> {
        self.frame(CLOSE, &[&code.to_be_bytes()]).await?;
        self.0.shutdown().await
    }

    async fn frame(&mut self, opcode: u8, parts: &[&[u8]]) -> std::io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut frame = Vec::with_capacity(length + 10);
        frame.push(0x80 | opcode);
        match length {
            0..=125 => frame.push(length as u8),
            126..=0xffff => {
                frame.push(126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                frame.push(127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        self.0.write_all(&frame).await?;
        self.0.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(first: u8, data: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let length = match data.len() {
            short @ 0..=125 => vec![0x80 | short as u8],
            long => [&[0x80 | 126][..], &(long as u16).to_be_bytes()].concat(),
        };
        let data = data.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        [first].into_iter().chain(length).chain(mask).chain(data).collect()
    }

    async fn read(bytes: &[u8]) -> Vec<Result<Message, String>> {
        let mut reader = Reader::new(bytes);
        let mut messages = Vec::new();
        loop {
            let message = reader.next().await.map_err(|error| error.to_string());
            let is_last = !matches!(message, Ok(Message::Data(_) | Message::Ping(_)));
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn messages_in_parts_and_between_pings() {
        let long = vec![7; 300];
        let bytes = [
            masked(0x02, b"ab"),
            masked(0x89, b"p"),
            masked(0x8a, b""),
            masked(0x80, b"c"),
            masked(0x82, &long),
            masked(0x88, b"\x03\xe8"),
        ];
        let messages = read(&bytes.concat()).await;
        let expected = [
            Ok(Message::Ping("p".into())),
            Ok(Message::Data("abc".into())),
            Ok(Message::Data(long.into())),
            Ok(Message::Close),
        ];
        assert_eq!(messages, expected);
    }

    #[tokio::test]
    async fn broken_frames_end_it() {
        let mut huge = vec![0x82, 0xff];
        huge.extend_from_slice(&u64::MAX.to_be_bytes());
        let table: [&[u8]; 8] = [
            &[0x82, 0x01],
            &masked(0xc2, b""),
            &masked(0x80, b""),
            &masked(0x83, b""),
            &masked(0x09, b""),
            &huge,
            &[0x82],
            b"",
        ];
        for bytes in table {
            let messages = read(bytes).await;
            assert!(matches!(messages.as_slice(), [Err(_)]), "{bytes:?}: {messages:?}");
        }
    }
}

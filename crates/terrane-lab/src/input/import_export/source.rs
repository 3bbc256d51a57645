//! The text of a file: its encoding, and its compression.
//!
//! A byte order mark names the encoding: UTF-8 and UTF-16 in either order. Text without a mark is not decoded, so that
//! keys and values may be any bytes. A caller may name an encoding of the WHATWG's standard, which includes the code
//! pages of Windows. Zstandard is decompressed; gzip is refused with the command that decompresses it.

use std::io::{self, Chain, Cursor, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use ruzstd::decoding::StreamingDecoder;

const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const GZIP: &[u8] = b"\x1f\x8b";

/// Bytes that are read and decoded at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The longest mark at the beginning of a file.
const MARK_BYTES: usize = 4;

/// An input with its first bytes.
type Begun<R> = Chain<Cursor<Vec<u8>>, R>;

/// Returns true if bytes begin with a mark that [`Text`] interprets.
pub(super) fn is_marked(bytes: &[u8]) -> bool {
    Encoding::for_bom(bytes).is_some() || [ZSTD, GZIP].iter().any(|mark| bytes.starts_with(mark))
}

/// Finds an encoding by its name, such as `utf-16le`, `latin1` or `shift_jis`.
///
/// # Errors
///
/// A sentence, if the name is unknown.
pub fn encoding_named(name: &str) -> Result<&'static Encoding, String> {
    let found = Encoding::for_label(name.as_bytes());
    let known = "a name of the Encoding Standard, such as utf-8, utf-16le, windows-1252, latin1 or shift_jis";
    found.ok_or_else(|| format!("unknown encoding '{name}'; expected {known}"))
}

/// The text of an input, which is opened by the first read, so that nothing blocks before it.
pub(super) struct Text<'a> {
    unopened: Option<Box<dyn Read + 'a>>,
    encoding: Option<&'static Encoding>,
    opened: Box<dyn Read + 'a>,
}

impl<'a> Text<'a> {
    pub(super) fn new(input: impl Read + 'a, encoding: Option<&'static Encoding>) -> Self {
        Self { unopened: Some(Box::new(input)), encoding, opened: Box::new(io::empty()) }
    }
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(input) = self.unopened.take() {
            self.opened = text_of(input, self.encoding)?;
        }
        self.opened.read(buffer)
    }
}

/// Returns the text of `input` in UTF-8 if it has a byte order mark or if `encoding` is given, and its bytes otherwise.
///
/// # Errors
///
/// If the input cannot be read, is compressed with gzip, or is not a Zstandard frame although it begins like one. The
/// text has an error where the input is not in its encoding.
fn text_of<'a>(
    input: impl Read + 'a,
    encoding: Option<&'static Encoding>,
) -> io::Result<Box<dyn Read + 'a>> {
    let (mark, input) = begun(input)?;
    if mark.starts_with(GZIP) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the input is compressed with gzip; decompress it: `zcat FILE | terrane load DB -`, with --format",
        ));
    }
    if !mark.starts_with(ZSTD) {
        return Ok(decoded(&mark, input, encoding));
    }
    let plain = StreamingDecoder::new(input).map_err(io::Error::other)?;
    let (mark, plain) = begun(plain)?;
    Ok(decoded(&mark, plain, encoding))
}

/// Reads the first bytes of an input.
fn begun<R: Read>(mut input: R) -> io::Result<(Vec<u8>, Begun<R>)> {
    let mut mark = Vec::with_capacity(MARK_BYTES);
    input.by_ref().take(MARK_BYTES as u64).read_to_end(&mut mark)?;
    Ok((mark.clone(), Cursor::new(mark).chain(input)))
}

fn decoded<'a>(
    mark: &[u8],
    mut input: Begun<impl Read + 'a>,
    encoding: Option<&'static Encoding>,
) -> Box<dyn Read + 'a> {
    let (named, mark_bytes) = Encoding::for_bom(mark).unzip();
    // An encoding by name does not make UTF-16 out of bytes that look like its mark.
    let of_mark = named.filter(|named| encoding.is_none_or(|given| given == *named));
    if of_mark.is_some() {
        let (mark, _) = input.get_mut();
        mark.set_position(mark_bytes.unwrap_or(0) as u64);
    }
    match of_mark.or(encoding) {
        // Keys and values need not be UTF-8.
        None => Box::new(input),
        Some(encoding) if encoding == UTF_8 => Box::new(input),
        Some(encoding) => Box::new(Transcoder::new(input, encoding)),
    }
}

/// Reads text in UTF-8 from another encoding.
struct Transcoder<R> {
    input: R,
    encoding: &'static Encoding,
    decoder: Decoder,
    /// Bytes of the input, of which the first `used` are decoded.
    raw: Vec<u8>,
    used: usize,
    /// The input has no more bytes.
    is_at_end: bool,
    /// The decoder has returned all text, and must not be called again.
    is_finished: bool,
    text: Vec<u8>,
    /// The part of `text` that was returned.
    returned: usize,
    /// The bytes of the input that are decoded.
    decoded_bytes: u64,
}

impl<R: Read> Transcoder<R> {
    fn new(input: R, encoding: &'static Encoding) -> Self {
        Self {
            input,
            encoding,
            decoder: encoding.new_decoder_without_bom_handling(),
            raw: Vec::new(),
            used: 0,
            is_at_end: false,
            is_finished: false,
            text: Vec::with_capacity(CHUNK_BYTES),
            returned: 0,
            decoded_bytes: 0,
        }
    }

    /// Decodes more text; none is left at the end of the input.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.returned = 0;
        while self.text.is_empty() && !self.is_finished {
            if self.used == self.raw.len() && !self.is_at_end {
                self.raw.clear();
                self.used = 0;
                let read =
                    self.input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.raw)?;
                self.is_at_end = read < CHUNK_BYTES;
            }
            self.text.resize(CHUNK_BYTES, 0);
            let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
                &self.raw[self.used..],
                &mut self.text,
                self.is_at_end,
            );
            self.text.truncate(written);
            self.used += read;
            self.decoded_bytes += read as u64;
            match result {
                DecoderResult::Malformed(..) => return Err(self.malformed()),
                DecoderResult::InputEmpty => self.is_finished = self.is_at_end,
                DecoderResult::OutputFull => {}
            }
        }
        Ok(())
    }

    fn malformed(&self) -> io::Error {
        let utf_16 =
            if [UTF_16LE, UTF_16BE].contains(&self.encoding) { "; is it cut off?" } else { "" };
        let (name, at) = (self.encoding.name(), self.decoded_bytes);
        let what = format!("the bytes before byte {at} of the input are not {name}{utf_16}");
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.returned == self.text.len() {
            self.fill()?;
        }
        let count = out.len().min(self.text.len() - self.returned);
        out[..count].copy_from_slice(&self.text[self.returned..self.returned + count]);
        self.returned += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], encoding: Option<&str>) -> io::Result<Vec<u8>> {
        let encoding = encoding.map(|name| encoding_named(name).unwrap());
        let mut text = Vec::new();
        text_of(bytes, encoding)?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_mark_or_a_name_decides_the_encoding() {
        assert_eq!(text(b"\xef\xbb\xbfa\xff", None).unwrap(), b"a\xff");
        assert_eq!(text(b"\xff\xfea\0\xe9\0", None).unwrap(), "a\u{e9}".as_bytes());
        assert_eq!(text(b"\xfe\xff\0a\0\xe9", None).unwrap(), "a\u{e9}".as_bytes());
        assert_eq!(text(b"a\0\xe9\0", Some("utf-16le")).unwrap(), "a\u{e9}".as_bytes());
        assert_eq!(text(b"caf\xe9 \x80", Some("latin1")).unwrap(), "caf\u{e9} \u{20ac}".as_bytes());
        assert_eq!(text(b"\xff\xfe", Some("latin1")).unwrap(), "\u{ff}\u{fe}".as_bytes());
        for plain in [&b""[..], b"a", b"\xff", b"\xef\xbb", b"caf\xe9"] {
            assert_eq!(text(plain, None).unwrap(), plain);
        }
        assert!(encoding_named("latin-9000").unwrap_err().contains("windows-1252"));
    }

    #[test]
    fn long_text_is_decoded_whole() {
        let long: String =
            (0..50_000).map(|number| format!("{number} \u{20ac}\u{1f30d}\n")).collect();
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(long.encode_utf16().flat_map(u16::to_le_bytes));
        assert!(text(&bytes, None).unwrap() == long.as_bytes());
        bytes.pop();
        let error = text(&bytes, None).unwrap_err().to_string();
        assert!(error.contains("not UTF-16LE; is it cut off?"), "{error}");
    }

    #[test]
    fn compressed_input_is_read_or_refused_with_a_remedy() {
        // A frame of one uncompressed block, which is the last one.
        let frame = b"\x28\xb5\x2f\xfd\x00\x58\x21\x00\x00a\t1\n";
        assert_eq!(text(frame, None).unwrap(), b"a\t1\n");
        let error = text(b"\x1f\x8b\x08", None).unwrap_err().to_string();
        assert!(error.contains("zcat"), "{error}");
    }
}

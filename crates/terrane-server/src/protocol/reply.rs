//! Writes replies. A type that RESP2 lacks is written as the type that Redis uses in its place.

/// The version of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// Appends a reply to a buffer.
#[derive(Debug)]
pub(crate) struct Reply {
    out: Vec<u8>,
    protocol: Protocol,
    start: usize,
}

impl Reply {
    /// Writes a reply at the end of `out`.
    pub(crate) fn new(out: Vec<u8>, protocol: Protocol) -> Self {
        let start = out.len();
        Self { out, protocol, start }
    }

    /// Returns the buffer with the reply.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Removes everything that this reply has written.
    pub(crate) fn restart(&mut self) {
        self.out.truncate(self.start);
    }

    /// Returns the bytes of the reply so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Returns the end of the reply so far, for [`Self::truncate`].
    pub(crate) fn position(&self) -> usize {
        self.out.len()
    }

    /// Removes everything after a position.
    pub(crate) fn truncate(&mut self, position: usize) {
        self.out.truncate(position.max(self.start));
    }

    #[inline]
    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// Writes a short string without line ends.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error: a code in capitals, and a sentence.
    pub(crate) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let clean = |byte: u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
        self.out.extend(text.bytes().map(clean));
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(crate) fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// Writes an unsigned number.
    pub(crate) fn unsigned(&mut self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Writes a count.
    #[inline]
    pub(crate) fn count(&mut self, value: usize) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    #[inline]
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.number(b'$', i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.out.reserve(bytes.len() + 2);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes text for people: a verbatim string in RESP3.
    pub(crate) fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.number(b'=', i64::try_from(text.len() + 4).unwrap_or(i64::MAX));
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Writes a null, which stands for a missing value.
    #[inline]
    pub(crate) fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes a null array.
    pub(crate) fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes a value, or a null if there is none.
    #[inline]
    pub(crate) fn bulk_or_null(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.bulk(value),
            None => self.null(),
        }
    }

    /// Begins an array of `len` replies.
    pub(crate) fn array(&mut self, len: usize) {
        self.number(b'*', i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// Begins a message of `len` parts that is not a reply: an array in RESP2.
    pub(crate) fn push(&mut self, len: usize) {
        let mark = if self.protocol == Protocol::Resp3 { b'>' } else { b'*' };
        self.number(mark, i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// Writes bytes that are already encoded.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Begins a map of `len` pairs of replies.
    pub(crate) fn map(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len * 2),
            Protocol::Resp3 => self.number(b'%', i64::try_from(len).unwrap_or(i64::MAX)),
        }
    }

    /// Begins a list of `len` pairs, each begun by [`Self::pair`]. In RESP2 the pairs are not arrays.
    pub(crate) fn pairs(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len * 2),
            Protocol::Resp3 => self.array(len),
        }
    }

    /// Begins a pair of a list of pairs.
    pub(crate) fn pair(&mut self) {
        if self.protocol == Protocol::Resp3 {
            self.array(2);
        }
    }

    /// Begins a set of `len` replies.
    pub(crate) fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len),
            Protocol::Resp3 => self.number(b'~', i64::try_from(len).unwrap_or(i64::MAX)),
        }
    }

    /// Writes an array of strings.
    pub(crate) fn texts(&mut self, texts: &[&str]) {
        self.array(texts.len());
        texts.iter().for_each(|text| self.bulk(text.as_bytes()));
    }

    #[inline]
    fn number(&mut self, mark: u8, value: i64) {
        // Most are short lengths, counts and small integers.
        if let Ok(small @ 0..=9) = u8::try_from(value) {
            self.out.extend_from_slice(&[mark, b'0' + small, b'\r', b'\n']);
            return;
        }
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value.unsigned_abs();
        while rest > 0 {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.out.push(mark);
        if value < 0 {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[at..]);
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, mark: u8, text: &[u8]) {
        self.out.push(mark);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl Fn(&mut Reply)) -> String {
        let mut reply = Reply::new(Vec::new(), protocol);
        write(&mut reply);
        reply.into_buffer().escape_ascii().to_string()
    }

    #[test]
    fn numbers_are_written_in_full() {
        for value in [0, 9, 10, -1, i64::MAX, i64::MIN, 1_000_000] {
            let text = written(Protocol::Resp2, |reply| reply.integer(value));
            assert_eq!(text, format!(":{value}\\r\\n"));
        }
    }

    #[test]
    fn types_of_resp3_have_forms_in_resp2() {
        let all = |reply: &mut Reply| {
            reply.map(1);
            reply.set(2);
            reply.null();
            reply.null_array();
            reply.verbatim("a");
        };
        assert_eq!(
            written(Protocol::Resp2, all),
            "*2\\r\\n*2\\r\\n$-1\\r\\n*-1\\r\\n$1\\r\\na\\r\\n"
        );
        assert_eq!(
            written(Protocol::Resp3, all),
            "%1\\r\\n~2\\r\\n_\\r\\n_\\r\\n=5\\r\\ntxt:a\\r\\n"
        );
    }

    #[test]
    fn an_error_is_one_line() {
        let text = written(Protocol::Resp2, |reply| reply.error("ERR a\r\nb"));
        assert_eq!(text, "-ERR a  b\\r\\n");
    }
}

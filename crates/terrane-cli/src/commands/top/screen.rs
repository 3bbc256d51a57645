//! The terminal while a page is refreshed in it: the alternate screen, without a cursor, with keys
//! that are read at once. Everything is restored when the value is dropped.

use std::io::{self, Write};

use crate::terminal::is_input_from_person;

/// The size of a terminal that does not report one.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// A narrower page cannot be read.
const COLUMNS_MIN: usize = 40;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    rows: usize,
}

impl Size {
    pub(super) fn now() -> Self {
        let size = terminal_size::terminal_size_of(io::stdout());
        let (columns, rows) = size.map_or((COLUMNS, ROWS), |(width, height)| {
            (usize::from(width.0), usize::from(height.0))
        });
        Self { columns: columns.max(COLUMNS_MIN), rows: rows.max(1) }
    }
}

/// A terminal in which a page is refreshed.
#[derive(Debug)]
pub(super) struct Screen {
    _keys: keys::Keys,
}

impl Screen {
    /// Returns true if the terminal can move its cursor.
    pub(super) fn is_possible() -> bool {
        std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
    }

    pub(super) fn begin() -> io::Result<Self> {
        let screen = Self { _keys: keys::Keys::begin() };
        write(ENTER)?;
        Ok(screen)
    }

    /// Replaces the page. Lines below the last row are left out.
    pub(super) fn draw(&mut self, lines: &[String], size: Size) -> io::Result<()> {
        let mut frame = String::from("\x1b[H");
        for (row, line) in lines.iter().take(size.rows).enumerate() {
            if row > 0 {
                frame.push_str("\r\n");
            }
            frame.push_str(line);
            // Clears the rest of the line, where an earlier page may have been longer.
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        write(&frame)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, nothing can be restored.
        let _ = write(LEAVE);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns true if the user has pressed `q`.
pub(super) fn is_quit_pressed() -> bool {
    is_input_from_person() && keys::pressed().is_some_and(|key| matches!(key, b'q' | b'Q'))
}

#[cfg(unix)]
mod keys {
    use std::io;
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

    /// Keys arrive at once and are not shown. Ctrl-C remains an interrupt.
    #[derive(Debug)]
    pub(super) struct Keys {
        before: Option<Termios>,
    }

    impl Keys {
        pub(super) fn begin() -> Self {
            // Without settings, standard input is not a terminal.
            let before = tcgetattr(io::stdin()).ok();
            if let Some(mut settings) = before.clone() {
                settings.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
                let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &settings);
            }
            Self { before }
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            if let Some(before) = &self.before {
                let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, before);
            }
        }
    }

    /// Returns a key that was pressed, without waiting for one.
    pub(super) fn pressed() -> Option<u8> {
        let input = io::stdin();
        let mut waits = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut waits, PollTimeout::ZERO).ok()?;
        let is_ready = ready > 0
            && waits.iter().any(|wait| {
                wait.revents().is_some_and(|events| events.contains(PollFlags::POLLIN))
            });
        let mut key = [0];
        // Bypasses the buffer of the standard library, which `poll` does not see.
        let read = is_ready.then(|| nix::unistd::read(input.as_fd(), &mut key).ok()).flatten()?;
        (read == 1).then_some(key[0])
    }
}

#[cfg(not(unix))]
mod keys {
    /// Keys are not read; Ctrl-C leaves.
    #[derive(Debug)]
    pub(super) struct Keys;

    impl Keys {
        pub(super) fn begin() -> Self {
            Self
        }
    }

    pub(super) fn pressed() -> Option<u8> {
        None
    }
}

//! Commands for both programs, and the right answers.
//!
//! The commands are generated while they are written, so that memory does not limit their number:
//! the same seed draws the same puts again. Only the keys of gets are kept.

use std::collections::HashMap;
use std::io::{self, Write};

use terrane_policy::random::SplitMix64;

/// The distribution of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyDistribution {
    /// All numbers of 32 bits with the same probability.
    Uniform,
    /// Normally distributed around 0, with the standard deviation of the course's generator: a
    /// third of the largest number.
    Gaussian,
}

impl KeyDistribution {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Gaussian => "Gaussian",
        }
    }
}

/// The puts of a workload, drawn from their seed.
#[derive(Debug, Clone)]
struct Puts {
    keys: KeyDistribution,
    random: SplitMix64,
    left: u64,
}

impl Iterator for Puts {
    type Item = (i32, i32);

    fn next(&mut self) -> Option<(i32, i32)> {
        self.left = self.left.checked_sub(1)?;
        let key = draw(self.keys, &mut self.random);
        // The smallest number is Dent's tombstone.
        Some((key, (self.random.bits() as i32).max(-i32::MAX)))
    }
}

/// Commands, and the answers of the gets.
pub(super) struct CommandWorkload {
    puts: Puts,
    /// The gets, a line each; half of them request keys that were put.
    pub(super) gets: Vec<u8>,
    /// The answer to each get.
    pub(super) answers: Vec<Option<i32>>,
    pub(super) put_count: u64,
}

impl CommandWorkload {
    /// Draws `puts` puts and `gets` gets.
    pub(super) fn new(keys: KeyDistribution, puts: u64, gets: u64, seed: u64) -> Self {
        let all = Puts { keys, random: SplitMix64::new(seed), left: puts };
        let mut random = SplitMix64::new(!seed);
        // A get requests the key of a put, by its number, or a key drawn anew.
        let requests: Vec<Result<u64, i32>> = (0..gets)
            .map(|_| match random.bits().is_multiple_of(2) && puts > 0 {
                true => Ok(random.bits() % puts),
                false => Err(draw(keys, &mut random)),
            })
            .collect();
        let requested = requested_keys(&requests, &all);
        let mut values: HashMap<i32, Option<i32>> =
            requested.iter().map(|&key| (key, None)).collect();
        for (key, value) in all.clone() {
            if let Some(newest) = values.get_mut(&key) {
                *newest = Some(value);
            }
        }
        let mut text = Vec::with_capacity(requested.len() * 14);
        for key in &requested {
            text.extend_from_slice(b"g ");
            push_number(&mut text, *key);
            text.push(b'\n');
        }
        let answers = requested.iter().map(|key| values.get(key).copied().flatten()).collect();
        Self { puts: all, gets: text, answers, put_count: puts }
    }

    /// Writes the puts, a line each.
    pub(super) fn write_puts(&self, out: &mut impl Write) -> io::Result<()> {
        const CHUNK: usize = 256 << 10;
        let mut text = Vec::with_capacity(CHUNK + 64);
        for (key, value) in self.puts.clone() {
            text.extend_from_slice(b"p ");
            push_number(&mut text, key);
            text.push(b' ');
            push_number(&mut text, value);
            text.push(b'\n');
            if text.len() >= CHUNK {
                out.write_all(&text)?;
                text.clear();
            }
        }
        out.write_all(&text)
    }
}

/// Returns the key of each request, in order.
fn requested_keys(requests: &[Result<u64, i32>], puts: &Puts) -> Vec<i32> {
    let mut keys: Vec<i32> = requests.iter().map(|request| request.err().unwrap_or(0)).collect();
    let mut wanted: Vec<(u64, usize)> = requests
        .iter()
        .enumerate()
        .filter_map(|(at, request)| Some(((*request).ok()?, at)))
        .collect();
    wanted.sort_unstable();
    let mut wanted = wanted.into_iter().peekable();
    for (number, (key, _)) in (0..).zip(puts.clone()) {
        while let Some((_, at)) = wanted.next_if(|(wanted, _)| *wanted == number) {
            keys[at] = key;
        }
        if wanted.peek().is_none() {
            break;
        }
    }
    keys
}

/// Appends a number in decimal digits. Formatting would take longer than the program takes for a put.
fn push_number(text: &mut Vec<u8>, number: i32) {
    let mut digits = [0; 10];
    let mut rest = number.unsigned_abs();
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        text.push(b'-');
    }
    text.extend_from_slice(&digits[start..]);
}

fn draw(keys: KeyDistribution, random: &mut SplitMix64) -> i32 {
    match keys {
        KeyDistribution::Uniform => random.bits() as i32,
        KeyDistribution::Gaussian => loop {
            let (first, second) = (1.0 - random.unit(), random.unit());
            let standard = (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos();
            let key = standard * f64::from(i32::MAX) / 3.0;
            if key.abs() < f64::from(i32::MAX) {
                return key as i32;
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 7, -7, 10, 1_234_567_890, i32::MAX, i32::MIN] {
            let mut text = Vec::new();
            push_number(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), number.to_string());
        }
    }

    #[test]
    fn answers_are_those_of_a_map_and_half_of_the_gets_have_one() {
        for keys in [KeyDistribution::Uniform, KeyDistribution::Gaussian] {
            let workload = CommandWorkload::new(keys, 1000, 1000, 7);
            let mut puts = Vec::new();
            workload.write_puts(&mut puts).unwrap();
            let mut map = HashMap::new();
            for line in std::str::from_utf8(&puts).unwrap().lines() {
                let mut words = line.split(' ').skip(1).map(|word| word.parse::<i32>().unwrap());
                map.insert(words.next().unwrap(), words.next().unwrap());
            }
            assert!(map.len() > 990);
            let gets = std::str::from_utf8(&workload.gets).unwrap();
            assert_eq!(gets.lines().count(), 1000);
            for (line, answer) in gets.lines().zip(&workload.answers) {
                let key: i32 = line.strip_prefix("g ").unwrap().parse().unwrap();
                assert_eq!(map.get(&key), answer.as_ref());
            }
            let found = workload.answers.iter().flatten().count();
            assert!((430..570).contains(&found), "{found}");
        }
    }
}

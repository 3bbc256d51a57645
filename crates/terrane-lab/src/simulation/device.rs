//! Measures the device of a directory: bandwidth, cost of a request, concurrency.
//!
//! Writes bypass the page cache and are synced every few megabytes; reads of the written bytes
//! bypass it as well, in several sizes and by several threads. Each point is measured several times
//! in turn, and the median counts, so that a pause of the machine has no effect. One request takes
//! `request + size / stream` seconds: the slope and the intercept are those of the median pair of
//! sizes. The bandwidth is that of a merge, which reads about as much as it writes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use terrane::storage::{Access, DiskStorage, RandomReader, Storage};
use terrane_sim::Device;

/// The bytes written before each sync, and the maximum in total.
const CHUNK_BYTES: usize = 4 << 20;
const FILE_BYTES: u64 = 256 << 20;

/// Writing stops after this time, once it has written some chunks.
const WRITE_TIME: Duration = Duration::from_secs(4);
const CHUNKS_MIN: usize = 8;

/// The sizes of reads. All are multiples of the alignment of direct I/O.
const SIZES: [usize; 4] = [4 << 10, 64 << 10, 256 << 10, 1 << 20];

/// The numbers of threads that read.
const DEPTHS: [u32; 5] = [1, 2, 4, 8, 16];

/// How long each point is measured at a time, and how often.
const POINT_TIME: Duration = Duration::from_millis(60);
const ROUNDS: usize = 5;

/// A measured device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredDevice {
    /// The device as the simulator sees it.
    pub device: Device,
    /// Bytes per second of synced writes.
    pub write_bytes_per_second: f64,
    /// Bytes per second of large reads by the best number of threads.
    pub read_bytes_per_second: f64,
    /// False if the file system refused direct I/O, so that reads may come from memory.
    pub is_direct: bool,
}

/// Measures the device of an existing directory, in a file that the caller removes with it.
///
/// # Errors
///
/// If the file cannot be written or read.
pub fn measure(dir: &Path) -> Result<MeasuredDevice> {
    let path = dir.join("device");
    let context = || format!("cannot measure the device at {}", path.display());
    let (written, len) = write(&path).with_context(context)?;
    let file = DiskStorage.open(&path, Access::Direct).with_context(context)?;
    let file = ReadFile { is_direct: file.is_direct(), file, len };
    let mut alone = vec![Vec::new(); SIZES.len()];
    let mut small = vec![Vec::new(); DEPTHS.len()];
    let mut large = vec![Vec::new(); DEPTHS.len()];
    for round in 0..ROUNDS {
        for (size, rates) in SIZES.iter().zip(&mut alone) {
            rates.push(file.rate(*size, 1, round).with_context(context)?);
        }
        for (at, depth) in DEPTHS.iter().enumerate() {
            small[at].push(file.rate(SIZES[0], *depth, round).with_context(context)?);
            large[at].push(file.rate(SIZES[SIZES.len() - 1], *depth, round).with_context(context)?);
        }
    }
    let medians = |rates: Vec<Vec<f64>>| rates.into_iter().map(median).collect::<Vec<f64>>();
    let (alone, small, large) = (medians(alone), medians(small), medians(large));
    let seconds: Vec<(f64, f64)> =
        SIZES.iter().zip(&alone).map(|(size, rate)| (*size as f64, 1.0 / rate)).collect();
    let (request_seconds, _) = fitted_line(&seconds);
    let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let read = most(&large) * SIZES[SIZES.len() - 1] as f64;
    let device = Device {
        bytes_per_second: 2.0 / (1.0 / read + 1.0 / written),
        request_seconds,
        request_bytes: SIZES[2] as f64,
        concurrency: (most(&small) / small[0]).round().clamp(1.0, 64.0) as u32,
    };
    Ok(MeasuredDevice {
        device,
        write_bytes_per_second: written,
        read_bytes_per_second: read,
        is_direct: file.is_direct,
    })
}

/// Writes the file; returns the bytes per second of the median synced chunk, and the file's length.
fn write(path: &Path) -> std::io::Result<(f64, u64)> {
    let chunk: Vec<u8> = (0..CHUNK_BYTES as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect();
    let mut file = DiskStorage.create(path, Access::Direct)?;
    let start = Instant::now();
    let (mut rates, mut len) = (Vec::new(), 0);
    while len < FILE_BYTES && (rates.len() < CHUNKS_MIN || start.elapsed() < WRITE_TIME) {
        let from = Instant::now();
        file.append(&chunk)?;
        file.sync()?;
        rates.push(chunk.len() as f64 / from.elapsed().as_secs_f64().max(1e-9));
        len += chunk.len() as u64;
    }
    Ok((median(rates), len))
}

/// The written file.
struct ReadFile {
    file: Arc<dyn RandomReader>,
    len: u64,
    is_direct: bool,
}

impl ReadFile {
    /// Returns the reads per second of this size by some threads, at scattered places.
    fn rate(&self, size: usize, depth: u32, round: usize) -> std::io::Result<f64> {
        let places = (self.len / size as u64).max(1);
        let reader = |number: u64| -> std::io::Result<f64> {
            let mut buffer = vec![0; size];
            let (start, mut reads) = (Instant::now(), 0u64);
            while start.elapsed() < POINT_TIME {
                let seed = (number + 1) * 1_000_003 + round as u64 * 7919 + reads;
                let place = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % places;
                self.file.read_at(place * size as u64, &mut buffer)?;
                reads += 1;
            }
            Ok(reads as f64 / start.elapsed().as_secs_f64())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..u64::from(depth)).map(|number| scope.spawn(move || reader(number))).collect();
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.sum()
        })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns intercept and slope of a line through points: the medians over all pairs of points
/// (Theil and Sen), which a few wrong points do not move.
fn fitted_line(points: &[(f64, f64)]) -> (f64, f64) {
    let mut slopes = Vec::new();
    for (at, (x1, y1)) in points.iter().enumerate() {
        slopes.extend(points[at + 1..].iter().map(|(x2, y2)| (y2 - y1) / (x2 - x1)));
    }
    let slope = median(slopes).max(0.0);
    let intercept = median(points.iter().map(|(x, y)| y - slope * x).collect());
    (intercept.max(0.0), slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_point_does_not_move_the_line() {
        let mut points: Vec<(f64, f64)> =
            (1..=7).map(|x| (f64::from(x), 0.5 + 2.0 * f64::from(x))).collect();
        let (intercept, slope) = fitted_line(&points);
        assert!((intercept - 0.5).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
        points[3].1 = 100.0;
        let (intercept, slope) = fitted_line(&points);
        assert!((intercept - 0.5).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_device_has_a_bandwidth_and_a_cost_per_request() {
        let dir = tempfile::tempdir().unwrap();
        let measured = measure(dir.path()).unwrap();
        assert!(measured.device.bytes_per_second > 1e5, "{measured:?}");
        assert!(measured.device.request_seconds < 1.0 && measured.device.concurrency >= 1);
        let (read, write) = (measured.read_bytes_per_second, measured.write_bytes_per_second);
        let least = read.min(write);
        assert!(measured.device.bytes_per_second >= least * 0.99, "{measured:?}");
        assert!(measured.device.bytes_per_second <= 2.0 * least * 1.01, "{measured:?}");
    }
}

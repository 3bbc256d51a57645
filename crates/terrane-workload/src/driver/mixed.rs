//! Operations of several kinds in proportions.
//!
//! Each kind is executed exactly as often as its share requires. In interleaved order, the next kind
//! is drawn in proportion to the remaining operations of each kind, so the proportions hold
//! throughout a phase.

use super::client::Client;
use crate::distribution::{Distribution, IndexChooser};
use crate::error::StoreError;
use crate::latency::Latency;
use crate::mixed::OwnKeys;
use crate::operation_mix::{MixOrder, MixPart};
use crate::random::below;

/// Executes `count` operations of the options' mix.
pub(super) fn run(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mix = client.options.mix.clone();
    let mut counts = mix.counts(count);
    let own = (client.thread, client.options.threads);
    let for_ranges = mix.deletes_ranges().then_some(&client.keys);
    let mut keys = OwnKeys::of(client.options.num, own, for_ranges);
    client.kinds = mix.parts().iter().map(|_| Latency::new()).collect();
    let mut first = 0;
    for parts in mix.phases() {
        let left = &mut counts[first..first + parts.len()];
        run_phase(client, (parts, mix.order), &mut keys, (left, first))?;
        first += parts.len();
    }
    Ok(())
}

/// Executes the operations of a phase: `left` of each part. The latencies of the parts are stored
/// from index `first` on.
fn run_phase(
    client: &mut Client<'_>,
    (parts, order): (&[MixPart], MixOrder),
    keys: &mut OwnKeys,
    (left, first): (&mut [u64], usize),
) -> Result<(), StoreError> {
    let mut choosers: Vec<IndexChooser> =
        parts.iter().map(|part| chooser(client, part, keys)).collect();
    let mut remaining: u64 = left.iter().sum();
    while remaining > 0 && !client.is_stopped() {
        let next = match order {
            MixOrder::Serial => left.iter().position(|left| *left > 0),
            MixOrder::Interleaved => drawn(left, below(&mut client.rng, remaining)),
        };
        let Some((next, part)) = next.and_then(|next| Some((next, *parts.get(next)?))) else {
            break;
        };
        left[next] -= 1;
        remaining -= 1;
        let inserted = client.hands().operate(part, keys, &mut choosers[next])?;
        if inserted {
            choosers.iter_mut().for_each(IndexChooser::grow);
        }
        let nanos = client.recorder.sample(1);
        client.kinds[first + next].record_nanos(nanos);
    }
    Ok(())
}

/// Returns the kind of remaining operation number `dice`, or `None` if there are fewer.
fn drawn(left: &[u64], mut dice: u64) -> Option<usize> {
    left.iter().position(|&left| {
        let is_it = dice < left;
        dice = dice.saturating_sub(left);
        is_it
    })
}

fn chooser(client: &Client<'_>, part: &MixPart, keys: &OwnKeys) -> IndexChooser {
    let chosen = part.distribution.or(client.options.distribution);
    IndexChooser::new(chosen.unwrap_or(Distribution::Uniform), keys.known(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_in_proportion_to_the_remaining_operations() {
        let fallen: Vec<_> = (0..5).map(|dice| drawn(&[2, 0, 3], dice)).collect();
        assert_eq!(fallen, [Some(0), Some(0), Some(2), Some(2), Some(2)]);
        assert_eq!(drawn(&[0, 0], 0), None);
    }
}

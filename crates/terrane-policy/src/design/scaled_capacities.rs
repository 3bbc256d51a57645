//! Capacities that scale with the tree.

use std::borrow::Cow;

use super::Design;
use crate::shape::TreeShape;
use crate::strategy::Growth;

impl Design {
    /// Returns the design with capacities for the current tree. Under [`Growth::Dynamic`], level 1
    /// is sized so that the last level is just full, but level 1 gets at least a T-th of its
    /// configured capacity. Each level then holds a T-th of the next one, so all other levels are
    /// small compared with the last, however full that is (performance-stability §5.2.3; Dong et
    /// al., CIDR 2017). No level gets less than level 0; levels below one that is raised to this
    /// minimum keep their share of the last.
    pub fn with_scaled_capacities(&self, shape: &TreeShape) -> Cow<'_, Self> {
        if self.strategy.growth != Growth::Dynamic {
            return Cow::Borrowed(self);
        }
        let last = shape.last_level();
        let ratio = f64::from(self.strategy.size_ratio);
        let full = self.capacity_bytes(last, last) as f64;
        let filled = shape.level(last).size_bytes() as f64 / full;
        // Round up, so that a last level that is not full does not exceed its capacity.
        let base = self.capacity_bytes(1, last) as f64 * filled.clamp(1.0 / ratio, 1.0);
        let base = (base.ceil() as u64).max(1);
        let mut scaled = self.clone();
        scaled.strategy.growth = Growth::Fixed;
        scaled.strategy.base_bytes = Some(base);
        let least = self.capacity_bytes(0, last);
        if least > base {
            let of = |level: usize| scaled.capacity_bytes(level, last).max(least);
            scaled.strategy.growth = Growth::Capacities((1..=last.max(1)).map(of).collect());
        }
        Cow::Owned(scaled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacities(shape: &str) -> [u64; 3] {
        let design: Design =
            "1-leveling T=10 L0=4 base=100MiB; buffer=1MiB; growth=dynamic".parse().unwrap();
        let shape: TreeShape = shape.parse().unwrap();
        let scaled = design.with_scaled_capacities(&shape);
        [0, 1, 2].map(|level| scaled.capacity_bytes(level, shape.last_level()) >> 20)
    }

    #[test]
    fn upper_levels_shrink_with_an_emptier_last_level() {
        let halfway = capacities("L1 r2: 2=a..=z:1MiB\nL2 r1: 1=a..=z:500MiB");
        assert_eq!(halfway, [4, 50, 500]);
        let begun = capacities("L1 r2: 2=a..=z:100MiB\nL2 r1: 1=a..=z:1MiB");
        assert_eq!(begun, [4, 10, 100]);
        let full = capacities("L1 r2: 2=a..=z:1MiB\nL2 r1: 1=a..=z:5000MiB");
        assert_eq!(full, [4, 100, 1000]);
    }

    #[test]
    fn no_level_holds_less_than_level_0_and_others_keep_their_share() {
        let design: Design =
            "1-leveling T=10 L0=4 base=8MiB; buffer=1MiB; growth=dynamic".parse().unwrap();
        let shape: TreeShape = "L3 r1: 1=a..=z:200MiB".parse().unwrap();
        let scaled = design.with_scaled_capacities(&shape);
        let capacities = [0, 1, 2, 3, 4].map(|level| scaled.capacity_bytes(level, 3) >> 20);
        assert_eq!(capacities, [4, 4, 20, 200, 2000]);
        let odd: TreeShape = "L2 r1: 1=a..=z:50000007".parse().unwrap();
        assert!(design.with_scaled_capacities(&odd).capacity_bytes(2, 2) >= 50_000_007);
    }

    #[test]
    fn other_designs_stay_unchanged() {
        let design: Design = "leveling".parse().unwrap();
        assert!(matches!(design.with_scaled_capacities(&TreeShape::default()), Cow::Borrowed(_)));
    }
}

use std::collections::BTreeMap;

use terrane_testkit::Rng;

use super::*;

/// Checks the order and the bounds of a subtree. Returns its height.
fn check(node: &Node<u64, u64>, from: u64, below: Option<u64>) -> usize {
    assert!(node.len() <= NODE_MAX);
    match node {
        Node::Leaf(entries) => {
            assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
            assert!(entries.first().is_none_or(|(key, _)| *key >= from));
            assert!(entries.last().is_none_or(|(key, _)| below.is_none_or(|below| *key < below)));
            1
        }
        Node::Inner(children) => {
            let next = |at: usize| children.get(at + 1).map_or(below, |next| Some(next.first));
            let heights: Vec<_> = (children.iter().enumerate())
                .map(|(at, child)| {
                    assert!(child.first >= from && child.node.len() > 0);
                    check(&child.node, child.first, next(at))
                })
                .collect();
            assert!(heights.iter().all(|height| *height == heights[0]));
            heights[0] + 1
        }
    }
}

#[test]
fn random_changes_give_the_entries_of_an_ordered_map_and_leave_clones_alone() {
    let mut rng = Rng::new(7);
    for keys in [10, 200, 5_000] {
        let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
        let mut clones = Vec::new();
        for step in 0..6_000 {
            let key = rng.below(keys);
            // Half of the time the map grows, and half of the time it shrinks.
            let grows = (step / 1500) % 2 == 0;
            match rng.below(4) {
                0 => assert_eq!(map.get(&key), model.get(&key)),
                1 if grows => assert_eq!(map.remove(&key), model.remove(&key)),
                _ if grows => assert_eq!(map.insert(key, step), model.insert(key, step)),
                1 => assert_eq!(
                    map.get_mut(&key).map(|v| *v += 1),
                    model.get_mut(&key).map(|v| *v += 1)
                ),
                _ => assert_eq!(map.remove(&key), model.remove(&key)),
            }
            if step % 500 == 0 {
                check(&map.root, 0, None);
                clones.push((map.clone(), model.clone()));
            }
        }
        for (map, model) in clones {
            assert_eq!(map.len(), model.len());
            assert!(map.iter().eq(model.iter()));
            assert_eq!(map.first(), model.first_key_value());
            assert_eq!(map.last(), model.last_key_value());
            assert_eq!(map, model.into_iter().collect());
        }
    }
}

#[test]
fn a_change_copies_one_node_per_level() {
    let map: SharedMap<u64, u64> = (0..100_000).map(|key| (key, key)).collect();
    let mut changed = map.clone();
    changed.insert(50_000, 0);
    fn nodes<'a>(node: &'a Arc<Node<u64, u64>>, all: &mut Vec<&'a Arc<Node<u64, u64>>>) {
        all.push(node);
        if let Node::Inner(children) = &**node {
            children.iter().for_each(|child| nodes(&child.node, all));
        }
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    nodes(&map.root, &mut before);
    nodes(&changed.root, &mut after);
    let copied = before.iter().zip(&after).filter(|(before, after)| !Arc::ptr_eq(before, after));
    assert_eq!(copied.count(), check(&map.root, 0, None));
    assert!(check(&map.root, 0, None) <= 5);
    assert_eq!((map[&50_000], changed[&50_000]), (50_000, 0));
}

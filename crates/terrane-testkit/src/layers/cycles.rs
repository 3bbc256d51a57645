//! Strongly connected components of a directed graph.

/// Returns the components of a graph in which node `n` has edges to `targets[n]` (Tarjan 1972). The
/// nodes of each component are sorted.
pub(super) fn components(targets: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        targets,
        order: vec![None; targets.len()],
        lowest: vec![0; targets.len()],
        is_open: vec![false; targets.len()],
        open: Vec::new(),
        visited: 0,
        components: Vec::new(),
    };
    for node in 0..targets.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.components
}

struct Search<'a> {
    targets: &'a [Vec<usize>],
    /// The position of each node in the order of visits.
    order: Vec<Option<usize>>,
    /// For each node, the earliest open node that is reachable from it.
    lowest: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    visited: usize,
    components: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let order = self.visited;
        self.visited += 1;
        (self.order[node], self.lowest[node]) = (Some(order), order);
        self.open.push(node);
        self.is_open[node] = true;
        for &target in &self.targets[node] {
            match self.order[target] {
                None => {
                    self.visit(target);
                    self.lowest[node] = self.lowest[node].min(self.lowest[target]);
                }
                Some(visited) if self.is_open[target] => {
                    self.lowest[node] = self.lowest[node].min(visited);
                }
                Some(_) => {}
            }
        }
        if self.lowest[node] == order {
            let from = self.open.iter().position(|open| *open == node).unwrap_or(0);
            let mut component = self.open.split_off(from);
            component.iter().for_each(|&member| self.is_open[member] = false);
            component.sort_unstable();
            self.components.push(component);
        }
    }
}

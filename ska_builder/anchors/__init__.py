"""From contrast pairs to anchors: keys, thresholds, values, refinement."""

"""Pairs of layers of two graphs that are the same layer, whatever their ids, order and names.

``match_graphs(a, b)`` pairs the layers of two graphs one to one, ``value_pairs`` their tensors. Time grows little
faster than the number of layers and edges, and the result is the same each time.

Knowledge of a layer, from the most to the least certain:

- *up*: everything that it is computed from, constants by their contents, Parameters by their element type. Two layers
  with the same *up* compute the same. It differs after every change.
- *down*: everything that is computed from it. It differs before every change.
- *surroundings*: all layers within two edges, constants by their contents. They differ only near a change.
- its own name, and the names of its neighbours.

The rules, in their order, after pairs that are known beforehand. Each step pairs only layers that are not paired yet
and that have the same type.

1. Equal keys that only one layer has on each side: (up, down, name); (up, name); (down, name); the same with tensor
   names; (up, down), but for constants; (surroundings, names of the layer and its neighbours); the contents of a
   constant of more than eight elements, or of a layer and such constants that it reads; surroundings, unless the names
   are those of other layers; the names of the layer and its neighbours. So structure outweighs a name where it is
   certain (two layers that swapped their names are two renames, not four changed edges), and the name decides between
   layers that structure does not distinguish.
2. Neighbours of pairs, best first: a candidate scores for equal names, equal attributes, and for every edge to a pair
   at the same ports; it loses for every edge that leads elsewhere, and where the other side has an unpaired layer of
   its name. A renamed layer with one changed attribute is therefore found between its neighbours, and a constant at
   its consumer, whatever its values. Pairs grow towards an insertion into a chain from both sides.
3. Repeated identical blocks have layers equal to several others. These are paired in topological order, each time
   followed by step 2, so that a block stays together.
4. The remaining layers are aligned as two sequences in topological order, by type and attributes, as diff aligns lines:
   this bridges several changes in a row. Then step 2 again, with less required.
5. Parameters and Results that are still left are paired by their position, if their numbers are equal. A constant
   may be read through layers of one side alone (Convert, or Subtract and Multiply for decompression); it is paired with
   the constant of as many elements that its consumer read on the other side. A layer between the same neighbours as one
   of another type is paired with it.

Bodies of paired layers are matched by name, and their layers the same way.
"""

from irexec.analysis.matching.match import Matching, Pair, ValuePair, match_graphs, value_pairs

__all__ = ["Matching", "Pair", "ValuePair", "match_graphs", "value_pairs"]

"""Which arrays `lm_weights.hdf5` of bilm-tf and AllenNLP holds: their names and shapes.

P below is `lstm.projection_dim`, H `lstm.dim`, F the number of filters, E the dimension of a
character's vector.
"""

from collections.abc import Collection

from polyseme.legacy.options import BilmOptions
from polyseme.legacy.tensors import Shapes

NUM_CHARACTERS = 261
"""256 bytes and five special ids. `n_characters` may say 262: in use there is one more, all 0."""
EMBEDDING = "char_embed"
PROJECTION, PROJECTION_BIAS = "CNN_proj/W_proj", "CNN_proj/b_proj"


def filter_names(number: int) -> tuple[str, str]:
    """Weight and bias of the filters of one width."""
    return f"CNN/W_cnn_{number}", f"CNN/b_cnn_{number}"


def highway_names(number: int, part: str) -> tuple[str, str]:
    """Weight and bias of a highway's `carry` or `transform`."""
    return f"CNN_high_{number}/W_{part}", f"CNN_high_{number}/b_{part}"


def cell_names(direction: int, layer: int) -> tuple[str, str, str]:
    """Weight, bias and projection of a layer; direction 0 is forward, 1 backward."""
    cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    return f"{cell}/W_0", f"{cell}/B", f"{cell}/W_P_0"


def is_input_projected(options: BilmOptions, names: Collection[str] = ()) -> bool:
    """Whether filters are projected: unless there are P of them; then the `names` in the file tell.

    bilm-tf leaves such a projection out, AllenNLP cannot do without.
    """
    is_needed = options.char_cnn.features != options.lstm.projection_dim
    return is_needed or PROJECTION in names


def is_output_projected(options: BilmOptions, names: Collection[str] = ()) -> bool:
    """Whether cells are projected: unless there are P of them; then the `names` tell."""
    is_needed = options.lstm.dim != options.lstm.projection_dim
    return is_needed or cell_names(0, 0)[2] in names


def shapes_of(options: BilmOptions, names: Collection[str] = ()) -> Shapes:
    """Every array of a file with these options, and with these `names` in it, if they are known."""
    cnn, proj_size, hidden_size = options.char_cnn, options.lstm.projection_dim, options.lstm.dim
    shapes: Shapes = {EMBEDDING: (NUM_CHARACTERS, cnn.embedding.dim)}
    for number, (reach, filters) in enumerate(cnn.filters):
        weight, bias = filter_names(number)
        shapes |= {weight: (1, reach, cnn.embedding.dim, filters), bias: (filters,)}
    for number in range(cnn.n_highway):
        for part in ("carry", "transform"):
            weight, bias = highway_names(number, part)
            shapes |= {weight: (cnn.features, cnn.features), bias: (cnn.features,)}
    if is_input_projected(options, names):
        shapes |= {PROJECTION: (cnn.features, proj_size), PROJECTION_BIAS: (proj_size,)}
    for direction in (0, 1):
        for layer in range(options.lstm.n_layers):
            weight, bias, projection = cell_names(direction, layer)
            shapes |= {weight: (2 * proj_size, 4 * hidden_size), bias: (4 * hidden_size,)}
            if is_output_projected(options, names):
                shapes[projection] = (hidden_size, proj_size)
    return shapes

"""What lesson heads keeps of the real model."""

import numpy as np

from attn_course.language.stored import stored
from attn_course.lessons.heads import tasks_real
from attn_course.reference import softmax


def test_the_stored_slices_give_the_map_and_the_word_of_the_model():
    (head,), (step,) = ([make(None)] for make in (tasks_real._layer_13_head_8, tasks_real._last_layer))
    scores = tasks_real.my_real_scores.answer(**head)
    model = stored(f"maps(text={tasks_real.SENTENCE!r})")[13, 8]
    np.testing.assert_allclose(softmax(np.where(np.tri(8) > 0, scores, -np.inf)), model, atol=2e-3)
    words, keys, _ = tasks_real.my_word_step.answer(**step)
    assert keys.shape == (3, 7, 64)
    start = "The sun rises in the east and"
    assert stored(f"write(text={start!r}, tokens=5)").startswith(start + tasks_real.slices()["words"][words.argmax()])

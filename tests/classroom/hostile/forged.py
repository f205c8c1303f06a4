"""Frames that a called answer sends to the grader itself, under the number of the very request; and what is said of them."""

SENDS = """
def thrice(x):
    import json, os, struct, sys
    frame = sys._getframe()
    while not ("nonce" in frame.f_locals and "line" in frame.f_locals):
        frame = frame.f_back
    line, nonce = frame.f_locals["line"], frame.f_locals["nonce"]
    def send(message, body=b""):
        header = json.dumps({"nonce": nonce, **message}).encode()
        line.sendall(struct.pack(">IQ", len(header), len(body)) + header + body)
"""
TWO = '{"array": ["float64", [2]]}, b"x" * 16'
NO_ANSWER, NO_FORM, NOT_ASKED = (
    "sent the grader what is no answer: ",
    "came back in no form that can be judged",
    "an answer to what was not asked",
)
FRAMES: dict[str, tuple[str, str]] = {
    **{
        f"an array as {field}": (f'send({{"{field}": {TWO.replace("},", "}}, ")})', NO_FORM)
        for field in ("undefined", "refused", "problem")
    },
    "an array as advice": ('send({"arrays": 0, "advice": {"array": ["float64", [2]]}}, b"x" * 16)', NO_FORM),
    "an array as number": ('send({"nonce": {"array": ["float64", [2]]}}, b"x" * 16)', NOT_ASKED),
    "a number of 4,000 digits": ('send({"problem": 10**4000})', NO_FORM),
    "more elements than can be": (
        'send({"arrays": {"tuple": [{"array": ["float64", [0, 2**39, 2**39, 2**39]]}]}})',
        NO_ANSWER + "an array in a frame must have a shape that NumPy takes",
    ),
    "8,000 arrays": ('send({"arrays": {"tuple": [{"array": ["float64", [0]]}] * 8000}})', "it must return one array; got a tuple of 8000"),
    "no arrays": ('send({"arrays": {"tuple": []}, "after": {"dict": [["x", 0]]}})', "changed its input `x`"),
    "a pickle": ("import pickle; line.sendall(pickle.dumps(ValueError) * 9)", NO_ANSWER),
    "half a frame": ('line.sendall(struct.pack(">IQ", 99, 0))', "ended Python"),
    "the number of the next request too": ('send({"problem": "one"}); send({"problem": "two"})', "one"),
    "a formula for a spreadsheet": ('send({"problem": "=HYPERLINK(1)"})', "HYPERLINK(1)"),
    "text that is no text": ('send({"problem": "\\ud800\\u202e\\x1b[31m"})', "[31m"),
}

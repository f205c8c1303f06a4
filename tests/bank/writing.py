# %% nucleus-of-next-words | right | one word after the other is let in
def my_chances(logits, temperature, share):
    scaled = (logits - max(logits)) / temperature
    p = np.exp(scaled) / np.exp(scaled).sum()
    kept, total = np.zeros(len(p)), 0.0
    for word in sorted(range(len(p)), key=lambda word: -p[word]):
        kept[word], total = p[word], total + p[word]
        if total >= share:
            break
    return kept / kept.sum()



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


# %% repair-next-word-loss | right | log-sum-exp by hand, a word at a time
def my_loss(logits, ids):
    total = 0.0
    for row, word in zip(logits[:-1], ids[1:]):
        top = row.max()
        total += top + np.log(np.exp(row - top).sum()) - row[word]
    return total / (len(ids) - 1)

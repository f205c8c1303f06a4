// Runs a script that `explorable.packed` has deflated. A browser that cannot inflate it leaves the words of the card in view.
(async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const script = document.createElement("script");
  script.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  document.head.append(script);
  script.remove();
})

// Every text that is shown: what it says, its colour and the colour behind it, as numbers from 0 to 255, and
// whether its figure shows it whole.
() => {
  const parse = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const paint = (element) => {
    const style = getComputedStyle(element);
    if (element instanceof SVGElement && !(element instanceof SVGSVGElement)) {
      if (["text", "tspan", "title", "desc", "g"].includes(element.tagName) || style.fill === "none") return null;
      const fill = parse(style.fill);
      return { rgb: fill.rgb, alpha: fill.alpha * Number(style.fillOpacity) * Number(style.opacity) };
    }
    return parse(style.backgroundColor);
  };
  const over = (top, below) => top.rgb.map((part, at) => part * top.alpha + below[at] * (1 - top.alpha));
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent.trim();
    const owner = node.parentElement;
    if (!text || ["title", "desc", "style"].includes(owner.tagName.toLowerCase())) continue;
    owner.scrollIntoView({ block: "center", inline: "center" });
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getClientRects()[0];
    if (!box || !box.width || !box.height) continue;
    const stack = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const style = getComputedStyle(owner);
    const colour = parse(owner instanceof SVGElement ? style.fill : style.color);
    // What lies under the text, from the page up; what is painted over it would be found above the owner.
    let ground = [255, 255, 255];
    for (const element of stack.slice(Math.max(stack.indexOf(owner), 0)).reverse()) {
      const painted = paint(element);
      if (painted) ground = over(painted, ground);
    }
    const picture = (owner.closest("svg") ?? owner).getBoundingClientRect();
    const whole =
      box.left > picture.left - 2 && box.right < picture.right + 2 && box.top > picture.top - 2 && box.bottom < picture.bottom + 2;
    found.push({ text, colour: over(colour, ground), ground, whole });
  }
  return found;
}

"use strict";
(() => {
  const live = document.getElementById("live");
  const lost = document.getElementById("lost");
  const get = async (path) => {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  };
  const look = async () => {
    try {
      const seen = await get("state");
      if (seen !== live.dataset.seen) {
        live.innerHTML = await get("body");
        live.dataset.seen = seen;
      }
      lost.hidden = true;
    } catch {
      lost.hidden = false;
    }
    setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
})();

// Renews the page in place once a second: the same page is asked for, and the parts that changed are exchanged.
(() => {
  'use strict';
  const one = id => document.getElementById(id);
  const lost = one('lost');
  let since = null;
  const put = html => {
    const next = new DOMParser().parseFromString(html, 'text/html');
    if (!next.getElementById('state')) throw new Error('another page');
    document.title = next.title;
    document.body.dataset.state = next.body.dataset.state;
    for (const part of next.querySelectorAll('[data-part]')) {
      const old = one(part.id);
      if (!old) continue;
      // What a person has opened or closed stays so.
      for (const fold of part.querySelectorAll('details')) {
        const known = one(fold.id);
        if (known) fold.open = known.open;
      }
      if (old.innerHTML === part.innerHTML) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement.id : '';
      old.innerHTML = part.innerHTML;
      if (focus && one(focus)) one(focus).focus({ preventScroll: true });
    }
  };
  const look = async () => {
    try {
      const answer = await fetch('/status', { cache: 'no-store', signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.status);
      put(await answer.text());
      since = null;
      lost.hidden = true;
    } catch {
      since = since || new Date();
      const time = since.toISOString().slice(11, 19);
      lost.textContent = `Connection to the gateway lost since ${time} UTC. What is below is from before.`;
      lost.hidden = false;
    }
    setTimeout(look, document.hidden ? 5000 : 1000);
  };
  setTimeout(look, 1000);
})();

// Asks for the page again and replaces the regions marked `data-live` that changed. Without this
// script the page is the same, as it was when it was loaded. Copy buttons, too, need it.
"use strict";

(() => {
  const wait = Number(document.body.dataset.poll || 0);
  const notice = document.getElementById("notice");
  let tag = "", timer = 0, failed = 0;

  function say(text) {
    if (notice.textContent === text) return;
    notice.textContent = text;
    notice.hidden = !text;
  }

  // What a person does in a region must survive it: open details, the focus, a selection.
  function key(node, region) {
    if (!node || !region.contains(node)) return null;
    if (node.id) return () => document.getElementById(node.id);
    const all = [...region.querySelectorAll(node.tagName)], at = all.indexOf(node);
    return (fresh) => fresh.querySelectorAll(node.tagName)[at];
  }

  function busy(region) {
    const selection = getSelection();
    if (selection && !selection.isCollapsed && region.contains(selection.anchorNode)) return true;
    const active = document.activeElement;
    return region.contains(active) && active.matches("input:not([type=hidden]), select, textarea");
  }

  function replace(region, fresh) {
    if (busy(region)) return;
    const open = new Set([...region.querySelectorAll("details[open][id]")].map((each) => each.id));
    const focus = key(document.activeElement, region);
    for (const each of fresh.querySelectorAll("details[id]")) each.open = open.has(each.id);
    region.className = fresh.className;
    region.replaceChildren(...fresh.childNodes);
    offer(region);
    const back = focus && focus(region);
    if (back) back.focus({ preventScroll: true });
  }

  async function look() {
    const headers = { "X-Live": "1", ...(tag && { "If-None-Match": tag }) };
    const answer = await fetch(location.href, {
      headers, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(10000),
    });
    if (answer.status === 401 || answer.status === 403) {
      say("Your session has ended: reload the page to log in.");
      return false;
    }
    if (answer.status === 304) {
      say("");
      return true;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    tag = answer.headers.get("ETag") || "";
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = [...document.querySelectorAll("[data-live]")].map((each) => each.id).join();
    const then = [...page.querySelectorAll("[data-live]")].map((each) => each.id).join();
    if (now !== then) {
      say("The page has changed: reload it.");
      return true;
    }
    say("");
    for (const fresh of page.querySelectorAll("[data-live]")) {
      const region = document.getElementById(fresh.id);
      if (region.dataset.was !== fresh.innerHTML) {
        region.dataset.was = fresh.innerHTML;
        replace(region, fresh);
      }
    }
    return true;
  }

  async function turn() {
    timer = 0;
    if (document.hidden) return;
    let on = true;
    try {
      on = await look();
      failed = 0;
    } catch {
      failed += 1;
      if (failed > 1) say("The service does not answer: the page shows earlier data.");
    }
    if (on && !timer) timer = setTimeout(turn, wait * Math.min(failed + 1, 5));
  }

  // Only where the browser lets it: over https and on this machine.
  function offer(root) {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.parentNode.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.parentNode.querySelector("code"));
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  offer(document);
  if (wait) {
    timer = setTimeout(turn, wait);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && !timer) turn();
    });
  }
})();

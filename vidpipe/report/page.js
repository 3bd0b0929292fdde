"use strict";
// Shows the rows of a run. Texts of the run are untrusted: they reach the page through `textContent` only.
// At most PAGE rows are in the document at a time, so that thousands are as quick as ten.
(() => {
  const PAGE = 100;
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const collator = new Intl.Collator(undefined, { numeric: true });
  const MARKS = { right: "right", part: "in part", wrong: "wrong" };

  const COLUMNS = [
    { name: "id", label: "Row", of: (row) => row.id },
    { name: "status", label: "Status", of: (row) => row.kind || row.status },
    { name: "question", label: "Question", of: (row) => row.question },
    { name: "text", label: "Answer", of: (row) => row.text ?? row.error ?? "" },
    { name: "answer", label: "Reference", of: (row) => row.answer ?? "" },
    { name: "score", label: "Score", of: (row) => row.score, number: true },
    { name: "frames", label: "Frames", of: (row) => row.frames, number: true },
    { name: "tokens", label: "Tokens in", of: (row) => row.tokens_in, number: true },
    { name: "out", label: "Out", of: (row) => row.tokens_out, number: true },
    { name: "seconds", label: "Engine s", of: (row) => row.seconds.engine ?? null, number: true },
  ];
  const columns = COLUMNS.filter((column) =>
    column.name === "id" || data.rows.some((row) => column.of(row) !== null && column.of(row) !== ""));
  // One lower-case text a row, made once, so that a key press costs a scan and no more.
  const haystack = data.rows.map((row) =>
    [row.id, row.name, row.question, row.text, row.answer, row.error, row.kind, ...row.options]
      .filter(Boolean).join("\n").toLowerCase());
  const state = { order: data.rows.map((_, place) => place), sort: null, descending: false, first: 0, open: null };

  function element(name, properties, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key === "class") made.className = value;
      else if (key in made && typeof value !== "string") made[key] = value;
      else made.setAttribute(key, value);
    }
    for (const child of children) if (child !== null && child !== undefined) made.append(child);
    return made;
  }
  const text = (name, content, kind) => {
    const made = element(name, kind ? { class: kind } : null);
    made.textContent = content;
    return made;
  };

  function select(id, values, label) {
    for (const value of [...new Set(values)].sort(collator.compare)) {
      const option = text("option", label(value));
      option.value = value;
      get(id).append(option);
    }
    if (get(id).options.length < 3) get(id).parentElement.hidden = true;
  }

  function apply() {
    const words = get("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const status = get("status").value;
    const mark = get("mark").value;
    state.order = data.rows.map((_, place) => place).filter((place) => {
      const row = data.rows[place];
      return (!status || (row.kind || row.status) === status) && (!mark || row.mark === mark) &&
        words.every((word) => haystack[place].includes(word));
    });
    const column = columns.find((one) => one.name === state.sort);
    if (column) {
      const sign = state.descending ? -1 : 1;
      const empty = (value) => value === null || value === undefined || value === "";
      state.order.sort((a, b) => {
        const [x, y] = [column.of(data.rows[a]), column.of(data.rows[b])];
        if (empty(x) || empty(y)) return empty(x) - empty(y) || a - b;
        return sign * (column.number ? x - y : collator.compare(x, y)) || a - b;
      });
    }
    state.first = 0;
    draw();
  }

  function heads() {
    get("heads").replaceChildren(...columns.map((column) => {
      const sorted = state.sort === column.name;
      const button = text("button", column.label);
      button.type = "button";
      button.append(text("span", sorted ? (state.descending ? " ▼" : " ▲") : "", "arrow"));
      button.addEventListener("click", () => {
        state.descending = sorted ? !state.descending : Boolean(column.number);
        state.sort = column.name;
        apply();
        get("heads").children[columns.indexOf(column)].firstChild.focus();
      });
      return element("th", {
        scope: "col", class: column.number ? "n" : "",
        "aria-sort": sorted ? (state.descending ? "descending" : "ascending") : "none",
      }, button);
    }));
  }

  const figure = (value) => value === null || value === undefined ? "" :
    Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(value < 10 ? 2 : 1);

  function cell(row, column) {
    const label = { "data-label": column.label };
    if (column.name === "id") {
      const button = text("button", row.id, "open");
      button.type = "button";
      return element("th", { scope: "row", ...label }, button);
    }
    if (column.name === "status") return element("td", label, chip(row));
    if (column.name === "score") {
      return element("td", { ...label, class: "n" },
        row.mark ? text("span", `${row.mark === "right" ? "✓" : row.mark === "wrong" ? "✗" : "◐"} ${figure(row.score)}`, row.mark) : "");
    }
    const value = column.of(row);
    const made = text("td", column.number ? figure(value) : value ?? "", column.number ? "n" : "clamp");
    made.setAttribute("data-label", column.label);
    if (column.name === "text" && row.text === null) made.classList.add("quiet");
    return made;
  }

  const chip = (row) => text("span", row.kind || row.status, `chip ${row.status === "ok" ? "good" : row.status === "length" ? "part" : "bad"}`);

  function draw() {
    heads();
    const shown = state.order.slice(state.first, state.first + PAGE);
    get("body").replaceChildren(...shown.map((place) => {
      const line = element("tr", { "data-place": String(place) }, ...columns.map((column) => cell(data.rows[place], column)));
      return line;
    }));
    const total = state.order.length;
    get("count").textContent = `${total.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} rows`;
    get("place").textContent = total ? `${(state.first + 1).toLocaleString("en")} to ${(state.first + shown.length).toLocaleString("en")}` : "no row fits";
    get("previous").disabled = state.first === 0;
    get("next").disabled = state.first + PAGE >= total;
    get("pager").hidden = total <= PAGE && total > 0;
  }

  function turn(by) {
    state.first = Math.max(0, state.first + by * PAGE);
    draw();
    get("rows").scrollIntoView();
  }

  // ---- one row ----

  function pictures(clip) {
    const found = get(`pictures-${clip}`);
    return found ? JSON.parse(found.textContent) : [];
  }

  function frames(medium, images) {
    const per = medium.texts && medium.texts.length ? Math.ceil(medium.frames.length / medium.texts.length) : 1;
    const shown = medium.shown || medium.frames.map((_, place) => place);
    return element("div", { class: "frames" }, ...shown.map((place, n) => {
      const isVideo = medium.kind === "video";
      const when = isVideo ? `${medium.times[place].toFixed(3)} s` : "";
      const told = isVideo && medium.texts ? medium.texts[Math.floor(place / per)] : "";
      const label = isVideo ? `frame ${medium.frames[place]} at ${when}` : "image";
      const image = images[n] && images[n].startsWith("data:image/webp;base64,") ?
        element("img", { src: images[n], alt: label, loading: "lazy" }) : text("div", "no picture", "blank");
      return element("figure", null, image, element("figcaption", null,
        isVideo ? text("span", when) : null, isVideo ? text("span", `#${medium.frames[place]}`, "quiet") : null,
        told ? text("span", told, "time") : null));
    }));
  }

  function prompt(row, clip) {
    const made = element("div", { class: "prompt", tabindex: "0", role: "group", "aria-label": "Prompt" });
    for (const part of row.prompt) {
      if (typeof part === "string") made.append(text("span", part));
      else {
        for (const [word, times] of clip.media[part].spans) {
          if (times === null) made.append(text("mark", word, "time"));
          else made.append(text("span", times > 1 ? `${word}×${times}` : word, times > 1 ? "vision" : "control"));
        }
      }
    }
    return made;
  }

  function pairs(entries) {
    const list = element("dl", { class: "pairs" });
    for (const [name, value] of entries) {
      if (value !== null && value !== undefined && value !== "") list.append(text("dt", name), text("dd", String(value)));
    }
    return list;
  }

  const block = (title, ...content) => element("section", { class: "block" }, text("h3", title), ...content);

  function show(place) {
    const row = data.rows[place];
    const clip = row.clip === null ? null : data.clips[row.clip];
    state.open = place;
    get("view-title").textContent = row.id;
    const body = [];
    const line = element("p", { class: "line" }, chip(row));
    if (row.mark) line.append(" ", text("span", `${MARKS[row.mark]}, ${figure(row.score)} by ${row.profile}`, row.mark));
    if (row.name) line.append(" ", text("span", row.name, "quiet"));
    body.push(line);
    if (row.error) body.push(block("Error", text("p", row.error, "words")));
    body.push(element("div", { class: "answers" },
      block("Question", text("p", row.question || "–", "words"), ...row.options.map((option) => text("p", option, "words option"))),
      block("Answer", text("p", row.text === null ? "no answer" : row.text || "(empty)", row.text ? "words answer" : "words quiet")),
      row.answer === null ? null : block("Reference", text("p", row.answer, "words"))));
    if (clip) {
      const images = pictures(row.clip);
      let used = 0;
      for (const medium of clip.media) {
        const mine = images.slice(used, used + (medium.shown ? medium.shown.length : 0));
        used += mine.length;
        const sizes = [medium.source ? `${medium.source.join("×")} in the file` : null, `${medium.size.join("×")} before the model`].filter(Boolean).join(", ");
        const heading = medium.kind === "video" ? `${medium.frames.length} frames of ${medium.name}` : medium.name;
        body.push(block(heading, text("p", [sizes, ...(medium.notes || [])].join(". "), "quiet"), clip.why ? null : frames(medium, mine)));
        if (clip.why) {
          body.at(-1).append(element("details", null, text("summary", "frame numbers and times"),
            text("p", medium.frames.map((frame, n) => `#${frame} ${medium.times[n].toFixed(3)} s`).join("   "), "words")));
        }
      }
      if (clip.why) body.push(block("No pictures", text("p", clip.why, "words quiet")));
    }
    body.push(block("Prompt", text("p", row.prompt_note, "quiet"), row.prompt ? prompt(row, clip || { media: [] }) : null));
    const times = Object.entries(row.seconds).map(([stage, seconds]) => `${stage} ${seconds.toFixed(3)} s`).join(", ");
    const vision = row.vision ? `${row.vision[0]} by the rules` + (row.vision[1] === null ? "" : `, ${row.vision[1]} in the prompt`) : null;
    body.push(block("Record", pairs([["status", row.status], ["finish reason", row.finish], ["marks", row.flags.join(", ")],
      ["prompt tokens", row.tokens_in], ["answer tokens", row.tokens_out], ["vision tokens", vision], ["time", times],
      ["attempt", row.attempt], ...Object.entries(row.columns)])));
    get("view-body").replaceChildren(...body.filter(Boolean));
    const at = state.order.indexOf(place);
    get("view-previous").disabled = at <= 0;
    get("view-next").disabled = at < 0 || at + 1 >= state.order.length;
    if (!get("view").open) get("view").showModal();
    get("view").scrollTop = 0;
    get("view-title").focus();
  }

  function step(by) {
    const next = state.order[state.order.indexOf(state.open) + by];
    if (next !== undefined) show(next);
  }

  // ---- wiring ----

  select("status", data.rows.map((row) => row.kind || row.status), (value) => value);
  select("mark", data.rows.map((row) => row.mark).filter(Boolean), (value) => MARKS[value]);
  get("filters").addEventListener("submit", (event) => event.preventDefault());
  get("filters").addEventListener("reset", () => setTimeout(apply));
  get("search").addEventListener("input", apply);
  get("status").addEventListener("change", apply);
  get("mark").addEventListener("change", apply);
  get("previous").addEventListener("click", () => turn(-1));
  get("next").addEventListener("click", () => turn(1));
  get("body").addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line && !String(getSelection())) show(Number(line.dataset.place));
  });
  get("view-close").addEventListener("click", () => get("view").close());
  get("view-previous").addEventListener("click", () => step(-1));
  get("view-next").addEventListener("click", () => step(1));
  get("view").addEventListener("keydown", (event) => {
    if (event.target.closest(".prompt")) return;
    if (event.key === "ArrowRight") step(1);
    if (event.key === "ArrowLeft") step(-1);
  });
  get("view").addEventListener("close", () => {
    const line = get("body").querySelector(`tr[data-place="${state.open}"] button`);
    if (line) line.focus();
    state.open = null;
  });
  apply();
})();

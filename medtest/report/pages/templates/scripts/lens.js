// Zoom and shift of all pictures of a stage in step.
function makeLens() {
  const LARGEST = 8;
  let zoom = 1;
  let shift = [0, 0]; // shares of a picture's size

  function place(stage) {
    const limit = (zoom - 1) / 2;
    shift = shift.map((value) => Math.max(-limit, Math.min(limit, value)));
    for (const one of stage.querySelectorAll(".face")) {
      one.style.transform = `translate(${100 * shift[0]}%, ${100 * shift[1]}%) scale(${zoom})`;
    }
  }

  function move(stage, [across, down]) {
    shift = [shift[0] + across, shift[1] + down];
    place(stage);
  }

  // Enlarge by a factor; 0 shows the whole picture.
  function enlarge(stage, factor) {
    zoom = Math.max(1, Math.min(LARGEST, factor === 0 ? 1 : zoom * factor));
    place(stage);
  }

  // Let a stage be dragged and, once it is enlarged or with the control key, zoomed by the wheel.
  function follow(stage) {
    let last = null;
    place(stage);
    stage.addEventListener("pointerdown", (event) => {
      if (zoom === 1) return;
      last = [event.clientX, event.clientY];
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!last) return;
      const frame = [...stage.querySelectorAll(".frame")].find((one) => one.clientWidth);
      move(stage, [(event.clientX - last[0]) / frame.clientWidth, (event.clientY - last[1]) / frame.clientHeight]);
      last = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) stage.addEventListener(name, () => { last = null; });
    stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && zoom === 1) return;
      event.preventDefault();
      enlarge(stage, event.deltaY < 0 ? 1.25 : 0.8);
    }, { passive: false });
  }

  return { enlarge, follow, move, zoomed: () => zoom > 1 };
}

// A page opened from a folder may start no Worker, and the search runs in one. There it runs in a hidden frame instead.
// Zensical would load such a script from another server. The name of this file is how it learns that there is one.
if (location.protocol === "file:") {
  // A Worker's message is a copy, and comes later.
  const send = (data, receive) => setTimeout(receive, 0, { data: structuredClone(data) })
  window.Worker = class {
    constructor(url) {
      this.frame = Object.assign(document.createElement("iframe"), { hidden: true })
      document.body.append(this.frame)
      this.inside = this.frame.contentWindow
      this.inside.postMessage = data => send(data, event => this.onmessage?.(event))
      const script = Object.assign(this.inside.document.createElement("script"), { src: url })
      this.ready = new Promise(done => script.addEventListener("load", done))
      this.inside.document.body.append(script)
    }
    postMessage(data) {
      this.ready.then(() => send(data, event => this.inside.onmessage(event)))
    }
    terminate() {
      this.frame.remove()
    }
  }
}

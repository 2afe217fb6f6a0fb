// A page opened from a folder may start no Worker, and the search runs in one. There it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = Object.assign(document.createElement("iframe"), { hidden: true })
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = Object.assign(this.inside.document.createElement("script"), { src: url })
      this.ready = new Promise(done => script.addEventListener("load", done))
      this.inside.document.body.append(script)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.inside.frameElement.remove()
    }
  }
}

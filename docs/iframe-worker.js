// Search works in a worker, and browsers start none for pages that are read from a folder (file://). There this
// file answers instead: the worker's script runs in a hidden frame of the page, and gets the same messages.
(() => {
  if (location.protocol !== "file:") return

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.document.open()
      inside.document.write("<!doctype html><body></body>")
      inside.document.close()
      // What the script calls: answers go to the page, further scripts are loaded one after the other.
      inside.postMessage = (data) => this.tell(new MessageEvent("message", { data }))
      inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve())
      this.load(String(url)).then(() => {
        this.ready = true
        this.waiting.forEach((data) => this.postMessage(data))
      })
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = () => reject(new Error(`${url} cannot be read`))
        this.frame.contentDocument.body.append(script)
      })
    }

    tell(event) {
      this.dispatchEvent(event)
      this.onmessage?.(event)
    }

    postMessage(data) {
      if (!this.ready) return void this.waiting.push(data)
      const inside = this.frame.contentWindow
      inside.dispatchEvent(new inside.MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
})()

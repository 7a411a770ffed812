// Calls to the worker as promises; events that it sends by itself go to listeners.

export class Link {
  constructor(url) {
    this.worker = new Worker(url, { type: "module" });
    this.waiting = new Map();
    this.listeners = new Map();
    this.next = 0;
    this.worker.onmessage = ({ data }) => {
      if (data.event) return this.listeners.get(data.event)?.(data);
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error === undefined) resolve(data.value);
      else reject(new Error(data.error));
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      const error = new Error(`The worker could not start: ${event.message || "this browser may lack modules in workers"}.`);
      this.waiting.forEach(({ reject }) => reject(error));
      this.waiting.clear();
      this.broken = error;
    };
  }

  /** @returns {Promise<any>} what the worker's function of this name returns */
  call(name, argument, transfer = []) {
    if (this.broken) return Promise.reject(this.broken);
    return new Promise((resolve, reject) => {
      const id = this.next++;
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, name, argument }, transfer);
    });
  }

  on(event, listener) {
    this.listeners.set(event, listener);
  }
}

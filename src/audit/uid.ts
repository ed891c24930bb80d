import { randomUUID } from 'node:crypto'

/** A UUID of version 7 (RFC 9562), so that an index of them grows at its end only. */
export function uuidAt(now: number): string {
  const time = Math.max(0, now).toString(16).padStart(12, '0').slice(-12)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

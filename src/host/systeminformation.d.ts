// The package declares types for its whole only; this module of it is loaded alone (memory.ts).
declare module 'systeminformation/lib/memory.js' {
  import type { Systeminformation } from 'systeminformation'
  export function mem(): Promise<Systeminformation.MemData>
}

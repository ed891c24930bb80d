import type { TestProject } from 'vitest/node'
import { sweep } from './boot.ts'
import { makePackage } from './package.ts'
import { lowerFolder } from './roots.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The package under test. */
    deb: string
  }
}

/** Once a run: makes the package and the minimal roots, and clears what an earlier, killed run has left. */
export async function setup({ provide }: TestProject): Promise<void> {
  await sweep()
  // Files run side by side, and each root is made once.
  for (const lower of ['minbase', 'services'] as const) await lowerFolder(lower)
  provide('deb', await makePackage())
}

export async function teardown(): Promise<void> {
  await sweep()
}

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

/** Once a run: makes the package and the minimal root, and removes what an earlier, killed run has left. */
export async function setup({ provide }: TestProject): Promise<void> {
  await sweep()
  await lowerFolder('minbase')
  provide('deb', await makePackage())
}

export async function teardown(): Promise<void> {
  await sweep()
}

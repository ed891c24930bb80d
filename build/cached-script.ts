import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import vm from 'node:vm'

/**
 * Compiles a CommonJS program as Node does. `cachedData` is a cache of V8: unlike Node's own compile cache, it may contain
 * functions that were compiled after the load.
 */
export function compileProgram(program: string, cachedData: Buffer | undefined): vm.Script {
  return new vm.Script(
    `(function(exports,require,module,__filename,__dirname){${readFileSync(program, 'latin1')}\n})`,
    {
      filename: program,
      ...(cachedData ? { cachedData } : {}),
      importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    },
  )
}

/** Runs a program that `compileProgram` has compiled. */
export function runProgram(script: vm.Script, program: string): void {
  const loaded = { exports: {} }
  const wrapper = script.runInThisContext() as (...args: unknown[]) => void
  wrapper(loaded.exports, createRequire(program), loaded, program, dirname(program))
}

// Runs a classic script from V8's compile cache beside it, as build/loader.ts runs the daemon. Plain JavaScript, so that
// it does not pay for the removal of types. The first run makes the cache, of all that it has compiled.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import vm from 'node:vm'

const [program = '', ...rest] = process.argv.slice(2)
process.argv.splice(1, Infinity, program, ...rest)
const cacheFile = `${program}.cache`
const cachedData = existsSync(cacheFile) ? readFileSync(cacheFile) : undefined
const script = new vm.Script(
  `(function(exports,require,module,__filename,__dirname){${readFileSync(program, 'latin1')}\n})`,
  {
    filename: program,
    ...(cachedData ? { cachedData } : {}),
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  },
)
if (cachedData === undefined) process.once('exit', () => writeFileSync(cacheFile, script.createCachedData()))
const loaded = { exports: {} }
script.runInThisContext()(loaded.exports, createRequire(program), loaded, program, dirname(program))

// Runs a classic script from V8's compile cache beside it, as build/loader.ts runs the daemon. The first run makes the
// cache, of all that it has compiled.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { compileProgram, runProgram } from '../build/cached-script.ts'

const [program = '', ...rest] = process.argv.slice(2)
process.argv.splice(1, Infinity, program, ...rest)
const cacheFile = `${program}.cache`
const cachedData = existsSync(cacheFile) ? readFileSync(cacheFile) : undefined
const script = compileProgram(program, cachedData)
if (cachedData === undefined) process.once('exit', () => writeFileSync(cacheFile, script.createCachedData()))
runProgram(script, program)

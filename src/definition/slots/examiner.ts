import { AppError } from '../../errors/app-error.ts'
import type { DefinitionSettings } from '../config.ts'
import { generalErrors } from '../../errors/codes.ts'
import { createLock } from '../../base/lock.ts'
import { stoppingError } from '../../errors/stopping.ts'
import { runWorker, type WorkerOptions } from '../../program/run-worker.ts'
import { CommandFailed } from '../../system/runner.ts'
import { refuse } from '../../archive/refusal.ts'
import {
  endLine,
  type Examined,
  type ExaminationOrder,
  type Finding,
  type Judgement,
  type JudgementOrder,
  profilesFile,
  type CountedProfiles,
  type StoredProfiles,
} from '../examination/protocol.ts'
import { join } from 'node:path'
import type { ValidatedVariable, VariableRules } from '../rules/variables.ts'
import type { GivenVariable } from '../definition.ts'
import type { DefinitionStore } from './definition-store.ts'
import { slotNames } from './slot-names.ts'

/** The program is `examine.cjs`. */
interface ExaminerOptions extends WorkerOptions {
  /** Limits of an examination. */
  readonly settings: DefinitionSettings['check']
}

/** An archive that is being examined while it arrives. */
export interface Examination {
  /** Reports how many bytes of the archive can be read now. */
  written(sizeBytes: number): void
  /** Reports that the archive is complete. */
  end(): void
  /** @throws AppError why the archive is refused, maybe before its end */
  readonly result: Promise<Examined>
  /** Ends the examination; resolves when its process writes no more. @param reason thrown by `result` then */
  cancel(reason?: AppError): Promise<void>
}

export interface Examiner {
  begin(order: ExaminationOrder): Examination
  /**
   * Judges values, one order at a time.
   * @throws AppError BadRequest if it takes too long or too much memory, NotReady if too many orders wait
   */
  judge(order: JudgementOrder): Promise<Judgement>
  /** Cancels all running examinations and begins no more; their results throw NotReady. */
  stop(): Promise<void>
}

// An upload may take long as long as bytes arrive. The configured limit starts at its last byte.
const longestMs = 7 * 86_400_000
const maxOutputBytes = 4_194_304
// Limits for judging values: several times what the largest allowed patterns take. A request waits for the judgement.
const judgement = { timeoutMs: 20_000, memoryMiB: 192, maxOutputBytes: 16_777_216, waiting: 4 }
// With V8's default of 16 MiB, 50 MB of YAML take 480 MiB instead of 310; above 512 MiB the unit is throttled (MemoryHigh).
const semiSpaceMiB = 4

/** Examines archives, and judges values, in a process of its own: src/definition/examination. */
export function createExaminer({ settings, ...worker }: ExaminerOptions): Examiner {
  const running = new Set<Examination>()
  const judging = new AbortController()
  let waiting = 0
  const inTurn = createLock()
  let stopped: AppError | undefined

  async function judgeNow(order: JudgementOrder): Promise<Judgement> {
    const { memoryMiB, timeoutMs, maxOutputBytes: most } = judgement
    const finding = await runWorker<Finding>(worker, {
      memoryMiB,
      semiSpaceMiB,
      timeoutMs,
      maxOutputBytes: most,
      signal: judging.signal,
      input: `${JSON.stringify(order)}\n`,
      tooMuch: () => tooCostly(`take more than ${memoryMiB} MiB`),
    }).catch((error: unknown) => {
      if (!(error instanceof CommandFailed)) throw error
      if (error.reason === 'timed-out') throw tooCostly(`take longer than ${timeoutMs / 1_000} s`)
      if (error.reason === 'output-too-large') throw tooCostly(`give a reply of more than ${most} bytes`)
      throw error
    })
    if ('judged' in finding) return finding.judged
    throw otherOrder()
  }

  return {
    async stop() {
      stopped = stoppingError()
      judging.abort(stopped)
      await Promise.all([
        inTurn(async () => undefined),
        ...[...running].map((examination) => examination.cancel(stopped)),
      ])
    },
    async judge(order) {
      if (waiting >= judgement.waiting)
        throw new AppError(generalErrors.NotReady, 'values for other variables are being judged; try again', {
          retryAfterSec: 5,
        })
      waiting += 1
      return inTurn(() => judgeNow(order)).finally(() => (waiting -= 1))
    },
    begin(order) {
      const stop = new AbortController()
      const progress = createProgress(order)
      if (stopped) stop.abort(stopped)
      let timer: NodeJS.Timeout | undefined
      const { memoryMiB } = settings
      const result = runWorker<Finding>(worker, {
        memoryMiB,
        semiSpaceMiB,
        timeoutMs: longestMs,
        maxOutputBytes,
        input: progress.lines,
        signal: stop.signal,
        tooMuch: () => refuse('MemoryLimit', undefined, `needs more than ${memoryMiB} MiB to be checked`),
      })
        .then((finding) => {
          if ('examined' in finding) return finding.examined
          throw otherOrder()
        })
        .finally(() => {
          clearTimeout(timer)
          running.delete(examination)
        })
      // The caller may read the upload before it awaits the result; until then a rejection is not unhandled.
      result.catch(() => undefined)
      const examination: Examination = {
        result,
        written: progress.written,
        end() {
          progress.end()
          const overdue = () =>
            stop.abort(refuse('TimeLimit', undefined, `takes longer than ${settings.seconds} s to check`))
          timer = setTimeout(overdue, settings.seconds * 1_000).unref()
        },
        async cancel(reason) {
          stop.abort(reason)
          await result.catch(() => undefined)
        },
      }
      running.add(examination)
      return examination
    },
  }
}

const otherOrder = () => new Error('examine.cjs answered a different order')

const tooCostly = (what: string) =>
  new AppError(
    generalErrors.BadRequest,
    `to judge values by the patterns of this definition would ${what}; give fewer and shorter values, or upload the definition with smaller patterns`,
    { details: { field: 'variables' } },
  )

/** The input of the program: the order, then only the newest number of bytes. */
function createProgress(order: ExaminationOrder) {
  let available = 0
  let isEnded = false
  let changed = Promise.withResolvers()
  const notify = () => {
    changed.resolve(undefined)
    changed = Promise.withResolvers()
  }
  async function* lines(): AsyncGenerator<string> {
    yield `${JSON.stringify(order)}\n`
    for (let reported = 0; ;) {
      if (available > reported) yield `${(reported = available)}\n`
      else if (isEnded) break
      else await changed.promise
    }
    yield `${endLine}\n`
  }
  return {
    lines: lines(),
    written(sizeBytes: number) {
      available = sizeBytes
      notify()
    },
    end() {
      isEnded = true
      notify()
    },
  }
}

/**
 * Judges values for the variables of a definition.
 * @param uid of the definition
 * @returns undefined if its files were removed
 * @throws AppError of `Examiner.judge`
 */
export type JudgeValues = (
  uid: string,
  given: readonly GivenVariable[],
) => Promise<readonly ValidatedVariable[] | undefined>

// About 20 ms of the event loop, the compilation of patterns included.
const requestSteps = 200_000
// Bytes of a file that is read and parsed on the event loop: a few milliseconds.
const sizeLimit = 524_288
// RE2JS caches states, up to 16 MiB a pattern, and the cache grows with the searches. So rules are dropped after this many steps.
const stepsKept = 2_000_000
// One set of rules for each slot.
const keptCount = slotNames.length

interface Kept {
  readonly rules: VariableRules
  steps: number
}

/**
 * Judges on the event loop if that takes only milliseconds, otherwise in a process of its own. A pattern is compiled on
 * the event loop only if its size is known: from the examination of the definition or, if an older version examined it,
 * from an earlier judgement by the process.
 */
export function createJudgeValues({
  store,
  examiner,
}: {
  readonly store: DefinitionStore
  readonly examiner: Examiner
}): JudgeValues {
  const kept = new Map<string, Kept>()
  const counted = new Map<string, CountedProfiles['patterns']>()

  async function read(uid: string): Promise<'gone' | 'heavy' | Kept> {
    const file = await store.open(uid, profilesFile)
    if (!file) return 'gone'
    try {
      const { size } = await file.stat()
      if (size > sizeLimit) return 'heavy'
      const stored = JSON.parse(await file.readFile('utf8')) as StoredProfiles
      const { profiles, patterns } =
        'profiles' in stored ? stored : { profiles: stored, patterns: counted.get(uid) }
      if (!patterns) return 'heavy'
      // The regex engine is larger than all other code here, so it is loaded when the first values are judged.
      const [{ createCountedPatterns }, { createVariableRules }] = await Promise.all([
        import('../rules/pattern.ts'),
        import('../rules/variables.ts'),
      ])
      const rules = createVariableRules(profiles, createCountedPatterns(new Map(patterns)))
      return { rules, steps: stepsKept }
    } finally {
      await file.close()
    }
  }

  const keep = <Value>(map: Map<string, Value>, uid: string, value: Value) => {
    map.set(uid, value)
    for (const each of [...map.keys()].slice(0, -keptCount)) map.delete(each)
  }

  function judgeHere(uid: string, own: Kept, given: readonly GivenVariable[]) {
    const work = { steps: requestSteps }
    const judged = own.rules.validateWithin(given, work)
    own.steps -= requestSteps - work.steps
    if (own.steps < 0) kept.delete(uid)
    else keep(kept, uid, own)
    return judged
  }

  return async (uid, given) => {
    const own = kept.get(uid) ?? (await read(uid))
    if (own === 'gone') return undefined
    const judged = own === 'heavy' ? undefined : judgeHere(uid, own, given)
    if (judged) return judged
    const { variables, patterns } = await examiner.judge({
      profiles: join(store.folder, uid, profilesFile),
      given,
    })
    keep(counted, uid, patterns)
    return variables
  }
}

import { Type, type Static } from 'typebox'
import { positive, strict } from '../config/schema-parts.ts'

/** The settings of the protection against guessing. */
export const Guard = Type.Object(
  {
    delayAfterFailures: positive(
      3,
      1_000_000,
      'Failures of one user from one client before each try has to wait.',
    ),
    firstDelaySeconds: positive(1, 3_600, 'The first wait; it doubles with each further failure.'),
    lockAfterFailures: positive(
      5,
      1_000_000,
      'Failures of one user from one client before the pair is locked.',
    ),
    lockMinutes: Type.Number({
      exclusiveMinimum: 0,
      maximum: 10_080,
      default: 15,
      description: 'Duration of a lock.',
    }),
    addressLockAfterFailures: positive(
      20,
      1_000_000,
      'Failures from one client before it is locked; an on-link IPv6 /64 as a whole has eight times as many.',
    ),
    userFailuresPerHour: positive(
      100,
      1_000_000,
      'Failures of one user in an hour, over all clients, above which only this host and addresses of earlier successes may try.',
    ),
    trackedKeys: positive(
      10_000,
      1_000_000,
      'Maximum number of counters in memory, and in total on the disk; the oldest are removed.',
    ),
  },
  strict,
)

/** The limits in the configuration. */
export type GuessLimits = Static<typeof Guard>

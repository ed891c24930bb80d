import { Type, type Static } from 'typebox'

/** The most that the text of stages may have, bytes: it goes to the verb as one. */
export const longestStages = 40_960

/** A step of stages: its files, then its commands. */
export const StageStep = Type.Object(
  {
    /** Where it stands: `stages.boot[0]`. */
    path: Type.String({ maxLength: 100 }),
    commands: Type.Array(Type.String({ maxLength: longestStages, pattern: '^[^\\0]+$' })),
    files: Type.Array(
      Type.Object(
        {
          path: Type.String({ pattern: '^/[^\\0\\n]{1,4095}$' }),
          base64: Type.String({ maxLength: 2 * longestStages, pattern: '^[A-Za-z0-9+/=]*$' }),
          mode: Type.Integer({ minimum: 0, maximum: 0o777 }),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
)
export type StageStep = Static<typeof StageStep>

/** How far the stages of this host are. */
export interface StagesStatus {
  readonly state: 'waiting' | 'running' | 'done' | 'failed'
  /** Why they failed, and the step; empty otherwise. */
  readonly message: string
  /** Milliseconds since 1970: of the last change of the state. */
  readonly at: number
}

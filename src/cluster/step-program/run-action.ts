import { StepFailed, type StepOrder } from '../step.ts'
import type { StepActions } from './action.ts'

/**
 * Runs an action. The last line of a failed one is its reason, for operators.
 * @param input the order, JSON
 * @returns the exit code
 */
export async function runAction(
  actions: StepActions,
  name: string,
  input: string,
  print: (line: string) => void,
): Promise<0 | 1> {
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) {
    print(`step.cjs does not know the action ${JSON.stringify(name)}; this is a defect of edgehostd`)
    return 1
  }
  try {
    await action(JSON.parse(input) as StepOrder, print)
    return 0
  } catch (error) {
    if (!(error instanceof StepFailed)) print(String((error as Error).stack))
    print(oneLine((error as Error).message))
    return 1
  }
}

const oneLine = (text: string) => text.trim().replace(/\s*\n\s*/g, '; ')

// Locks a state folder until it is killed; for tests of the lock.
import { lockState } from '../../src/store/state-lock.ts'
import { captureLog } from './https-server.ts'

const [directory = ''] = process.argv.slice(2)
const lock = lockState(directory, captureLog().log)
process.stdout.write('held\n')
process.stdin.once('data', () => {
  lock.release()
  process.stdout.write('released\n')
})

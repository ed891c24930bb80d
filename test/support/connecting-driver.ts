/** Connects and disconnects a host again and again, as far as its files go, until it is killed. Arguments: configuration file, state folder. */
import { discardStaged, placesOf, removeFiles, stageFiles } from '../../src/connect/files.ts'

const [configFile = '', stateDirectory = '', dropIn = ''] = process.argv.slice(2)
const places = placesOf(configFile, stateDirectory)
await discardStaged(places)
for (;;) {
  const files = await stageFiles(places, { token: 'the-token', authorities: 'the authorities\n', dropIn })
  process.stdout.write('staged\n')
  await files.commit()
  process.stdout.write('in place\n')
  await removeFiles(places)
  process.stdout.write('removed\n')
}

// Asks ARX whether tables satisfy privacy models at given levels of the hierarchies of a and b.
// A line of the input: records "a,b,w;…", level of a, level of b, model, its numbers; parted by tabs.
// A line of the output: 1 if ARX finds the table anonymous as it is, without suppression, else 0.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.*;

public class Peer {

    static Hierarchy hierarchy(int values) {
        Hierarchy.DefaultHierarchy made = Hierarchy.create();
        for (int i = 0; i < values; i++) {
            made.add(String.valueOf(i), "pair " + i / 2, "*");
        }
        return made;
    }

    static PrivacyCriterion model(String name, double x, int l) {
        switch (name) {
            case "k": return new KAnonymity((int) x);
            case "distinct l": return new DistinctLDiversity("w", (int) x);
            case "entropy l": return new EntropyLDiversity("w", x);
            case "recursive": return new RecursiveCLDiversity("w", x, l);
            case "t": return new EqualDistanceTCloseness("w", x);
            case "beta": return new BasicBLikeness("w", x);
            case "enhanced beta": return new EnhancedBLikeness("w", x);
            case "delta": return new DDisclosurePrivacy("w", x);
            default: throw new IllegalArgumentException(name);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            String[] fields = line.split("\t");
            Data.DefaultData data = Data.create();
            data.add("a", "b", "w");
            for (String record : fields[0].split(";")) {
                data.add(record.split(","));
            }
            int[] levels = {Integer.parseInt(fields[1]), Integer.parseInt(fields[2])};
            for (int i = 0; i < 2; i++) {
                String name = i == 0 ? "a" : "b";
                data.getDefinition().setAttributeType(name, hierarchy(6));
                data.getDefinition().setMinimumGeneralization(name, levels[i]);
                data.getDefinition().setMaximumGeneralization(name, levels[i]);
            }
            boolean keyAlone = fields[3].equals("k");
            data.getDefinition().setAttributeType("w",
                keyAlone ? AttributeType.INSENSITIVE_ATTRIBUTE : AttributeType.SENSITIVE_ATTRIBUTE);
            ARXConfiguration config = ARXConfiguration.create();
            config.addPrivacyModel(
                model(fields[3], Double.parseDouble(fields[4]), Integer.parseInt(fields[5])));
            config.setSuppressionLimit(0d);
            boolean holds = new ARXAnonymizer().anonymize(data, config).isResultAvailable();
            System.out.println(holds ? 1 : 0);
        }
    }
}
